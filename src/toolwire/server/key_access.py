"""Named keys in a running gateway: which key a request has, what it may do, and what it has used."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable

from msgspec import Struct

from ..errors import BadRequest, GatewayError, quote
from ..memory.keys import KeyDirectory, NamedKey
from ..memory.reservations import KeyLimits, Reservation
from ..memory.store import Store
from ..runtime import Runtime
from ..telemetry import Record
from ..telemetry.prices import Price, PriceTable
from ..types import Request, Usage
from .auth import Guard

_REFRESH_SECONDS = 2.0  # until a new or revoked key takes effect
_WATCH_EVERY = 10  # refreshes between two signs of life


class Grant(Struct):
    """What one request has reserved, in its record."""

    held: Reservation
    write: Callable[..., Awaitable[None]]
    record: Record

    async def settle(self, usage: Usage) -> None:
        """Before the client gets the end of its answer: then no kill of the process loses what it used."""
        await self.write(self.held, self.record, usage, is_answered=True)
        self.record.grant = None


class KeyAccess:
    """Keeps the keys of the guard up to date. say: writes to the log."""

    def __init__(
        self, store: Store, guard: Guard, say: Callable[..., None], runtime: Runtime, prices: Callable[[], PriceTable]
    ) -> None:
        self._directory = KeyDirectory(store, time.time)
        self._limits = KeyLimits(store)
        self._guard = guard
        self._say = say
        self._runtime = runtime
        self._prices = prices
        self._task: asyncio.Task[None] | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._is_down = False

    async def start(self) -> None:
        self._guard.lacks_named = True
        await self._refresh()
        self._task = asyncio.create_task(self._run(), name="keys")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._settling:
            await asyncio.wait(self._settling)
        with contextlib.suppress(GatewayError):
            await self._limits.leave()

    async def admit(self, key: NamedKey, request: Request, size: int, record: Record) -> None:
        """Raises BadRequest with 403 or 429, and GatewayError with 503 if the store of a limited key is down."""
        record.key = key.name
        if not key.allows_model(request.model):
            model = quote(request.model)
            raise BadRequest(f"the key {key.name} may not use the model {model}.", status=403, code="permission_denied")
        if key.is_limited:
            price = await self._price(key, request) if key.max_cost else None
            held = await self._limits.reserve(key, size, request.max_tokens, price)
        else:
            held = self._limits.unlimited(key)
        record.grant = Grant(held, self._settle, record)

    def settle(self, record: Record) -> None:
        """The request has ended. What it used is written in the background, unless that was done before the end of its answer."""
        grant, record.grant = record.grant, None
        if grant is None:
            return
        is_answered = bool(record.first_byte) or record.outcome == "client_gone"
        task = asyncio.create_task(self._settle(grant.held, record, record.usage, is_answered=is_answered))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle(self, held: Reservation, record: Record, usage: Usage | None, *, is_answered: bool) -> None:
        """What the store does not take now is tried again later."""
        try:
            cost = self._prices().cost(record.backend, record.sent_model, usage)
            await self._limits.settle(held, usage, is_answered=is_answered, cost=cost)
        except GatewayError as error:
            self._say(
                "warning",
                f"the usage of the key {record.key} could not be stored yet: {error.message}",
                record.request_id,
            )

    async def _price(self, key: NamedKey, request: Request) -> Price:
        """Of a group, the highest price of its models. Raises BadRequest with 403 for a model whose price is unknown: it could exceed any
        budget."""
        prices = []
        for name in self._runtime.models_of(request.model):
            route = await self._runtime.catalog.route(name)
            price = self._prices().price(route.backend, route.model)
            if price is None:
                model = quote(f"{route.backend}/{route.model}")
                raise BadRequest(
                    f"the key {key.name} has a budget of money, and the price of {model} is unknown.",
                    status=403,
                    code="permission_denied",
                    hint="The owner of the gateway can add it under [prices].",
                )
            prices.append(price)
        return max(prices, key=lambda price: (price.output, price.input))

    async def _run(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(_REFRESH_SECONDS)
            await self._refresh()
            await self._limits.settle_rest()
            count += 1
            if count % _WATCH_EVERY == 0 and self._guard.named:
                with contextlib.suppress(GatewayError):
                    await self._limits.watch()

    async def _refresh(self) -> None:
        """While the store is down, the keys stay as they are."""
        try:
            self._guard.named = await self._directory.by_hash()
            self._is_down = self._guard.lacks_named = False
        except GatewayError as error:
            if not self._is_down:
                self._say("warning", f"the named keys could not be read: {error.message}")
            self._is_down = True
