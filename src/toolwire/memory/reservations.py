"""Limits of keys: each request reserves what it may use before it runs, and settles what it used afterwards.

All counters of a request change in one step of the store, so that no number of processes admits more than a limit. A reservation has a
record in the store. If its process dies, another one releases it: streams are free again, and the reserved tokens stay counted, because the
back end may have used them.
"""

from __future__ import annotations

import asyncio
import calendar
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from ..errors import BadRequest, GatewayError
from ..ids import new_id
from ..types import Usage
from .keys import NamedKey
from .store import CounterChange, SharedRecord, Store

HOLDS = "hold"
ALIVE_SECONDS = 60.0  # a hold that was not renewed for so long belongs to a dead process
_MINUTE = 60
_DAY = 86400.0
_PATIENCE = 1.0  # seconds that a request waits for a stream that is about to end
_STEP = 0.05
_BYTES_PER_TOKEN = 4
_DEFAULT_ANSWER = 1024  # tokens, where the request sets no limit


class Reservation(Struct, frozen=True, kw_only=True):
    """tokens: reserved in each of the token counters. renewed: the last sign of life of its process."""

    id: str
    token_counters: tuple[str, ...]
    tokens: int
    stream_counter: str = ""
    renewed: float = 0.0


_decode = msgspec.json.Decoder(Reservation).decode


class KeyLimits:
    """The limits of all keys, in one store that any number of processes share."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._held: dict[str, Reservation] = {}

    async def reserve(self, key: NamedKey, size: int, max_tokens: int | None) -> Reservation:
        """size: bytes of the request. Raises BadRequest with 429, and GatewayError if the store fails."""
        now = self._clock()
        minute = int(now // _MINUTE)
        tokens = size // _BYTES_PER_TOKEN + (max_tokens or _DEFAULT_ANSWER)
        window_end = (minute + 2) * _MINUTE
        names = {
            "requests": f"rpm {key.id} {minute}",
            "tokens": f"tpm {key.id} {minute}",
            "streams": f"streams {key.id}",
            "budget": _budget(key, now),
        }
        changes = [CounterChange(names["budget"], tokens, key.budget or None, _period_end(now, key.period) + _DAY)]
        if key.requests_per_minute:
            changes.append(CounterChange(names["requests"], 1, key.requests_per_minute, window_end))
        if key.tokens_per_minute:
            changes.append(CounterChange(names["tokens"], tokens, key.tokens_per_minute, window_end))
        if key.streams:
            changes.append(CounterChange(names["streams"], 1, key.streams))
        counted = (names["budget"], *([names["tokens"]] if key.tokens_per_minute else []))
        stream = names["streams"] if key.streams else ""
        held = Reservation(
            id=new_id("hold_"), token_counters=counted, tokens=tokens, stream_counter=stream, renewed=now
        )
        await self._take(changes, held, key, now)
        self._held[held.id] = held
        return held

    async def settle(self, held: Reservation, usage: Usage | None, *, is_answered: bool) -> None:
        """usage: of the answer. Without one an answered request keeps what it reserved, and a refused one used nothing."""
        self._held.pop(held.id, None)
        used = held.tokens if usage is None and is_answered else 0 if usage is None else usage.input + usage.output
        changes = [CounterChange(name, used - held.tokens) for name in held.token_counters if used != held.tokens]
        if held.stream_counter:
            changes.append(CounterChange(held.stream_counter, -1))
        await self._store.apply(changes, drop=[(HOLDS, held.id)])

    async def renew(self) -> None:
        """Call it regularly: keeps the reservations of this process, and releases those of dead ones."""
        now = self._clock()
        if self._held:
            self._held = {name: msgspec.structs.replace(held, renewed=now) for name, held in self._held.items()}
            await self._store.apply(put=[_record(held) for held in self._held.values()])
        for record in await self._store.records(HOLDS):
            held = _decode(record.value)
            if held.id not in self._held and held.renewed < now - ALIVE_SECONDS:
                changes = [CounterChange(held.stream_counter, -1)] if held.stream_counter else []
                await self._store.apply(changes, drop=[(HOLDS, held.id)])

    async def count(self, key: NamedKey, usage: Usage) -> None:
        """Tokens of a key without limits."""
        now = self._clock()
        change = CounterChange(_budget(key, now), usage.input + usage.output, None, _period_end(now, key.period) + _DAY)
        await self._store.apply([change])

    async def used(self, key: NamedKey) -> int:
        """Tokens of the current period."""
        name = _budget(key, self._clock())
        return (await self._store.counters([name])).get(name, 0)

    async def _take(self, changes: list[CounterChange], held: Reservation, key: NamedKey, now: float) -> None:
        """A client that sends one request after the other may be faster than the end of its last one, so a stream is waited for."""
        waited = 0.0
        while full := await self._store.apply(changes, put=[_record(held)]):
            if full != held.stream_counter or waited >= _PATIENCE:
                raise _refusal(full, key, now)
            waited += _STEP
            await self._sleep(_STEP)


class RateLimited(BadRequest):
    """headers: for the client."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.headers = {"retry-after": str(seconds)}


def _record(held: Reservation) -> SharedRecord:
    return SharedRecord(HOLDS, held.id, msgspec.json.encode(held))


def _refusal(counter: str, key: NamedKey, now: float) -> GatewayError:
    kind = counter.partition(" ")[0]
    next_minute = int(_MINUTE - now % _MINUTE) + 1
    match kind:
        case "rpm":
            return RateLimited(
                f"the key {key.name} may send {key.requests_per_minute} requests per minute.", next_minute
            )
        case "tpm":
            return RateLimited(f"the key {key.name} may use {key.tokens_per_minute} tokens per minute.", next_minute)
        case "streams":
            return RateLimited(f"the key {key.name} may have {key.streams} requests open at once.", 1)
    until = int(_period_end(now, key.period) - now) + 1
    return RateLimited(f"the key {key.name} has used its budget of {key.budget} tokens for this {key.period}.", until)


def _budget(key: NamedKey, now: float) -> str:
    """The counter of the current period."""
    form = "%Y-%m-%d" if key.period == "day" else "%Y-%m"
    return f"budget {key.id} {datetime.fromtimestamp(now, UTC).strftime(form)}"


def _period_end(now: float, period: str) -> float:
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if period == "day" else calendar.monthrange(day.year, day.month)[1] - day.day + 1
    return day.timestamp() + days * _DAY
