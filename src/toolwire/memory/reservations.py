"""Limits of keys: each request reserves what it may use before it runs, and settles what it used afterwards.

All counters of a request change in one step of the store, so that no number of processes admits more than a limit. A reservation has a
record in the store, and settling drops it, so a settlement that is repeated after an outage of the store counts once. What could not be
settled is tried again until the store has it.

If a process dies, another one releases its reservations: streams are free again, and the reserved tokens stay counted, because the back
end may have used them. A process is dead if its sign of life does not change while another one watches it. No clock of another machine is
involved, and time in which the store was down does not count: nobody could renew anything in it.
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
from ..telemetry.prices import Price, dollars
from ..types import Usage
from .keys import NamedKey
from .store import CounterChange, SharedRecord, Store

HOLDS = "hold"
LIVES = "limits"  # the space of the signs of life
ALIVE_SECONDS = 60.0  # a process without a new sign of life for so long is dead
_LIFE_SECONDS = 86400.0  # until a sign of life is deleted
_MINUTE = 60
_DAY = 86400.0
_PATIENCE = 1.0  # seconds that a request waits for a stream that is about to end
_STEP = 0.05
_BYTES_PER_TOKEN = 4
_DEFAULT_ANSWER = 1024  # tokens, where the request sets no limit
_ONCE_SECONDS = 6 * 3600.0  # in which usage of a key without limits is not counted twice
_MAX_UNSETTLED = 20_000
_MOST_ABSENT = 5  # attempts to find a reservation whose request was lost on its way


class Reservation(Struct, frozen=True, kw_only=True):
    """tokens: reserved in each of the token counters, which have the time when they expire. process: the one that made it.

    cost: reserved in the counter of costs. is_stored: there is a record of it, because the key has limits.
    """

    id: str
    process: str
    token_counters: tuple[tuple[str, float], ...]
    tokens: int = 0
    cost_counter: tuple[str, float] = ("", 0.0)
    cost: int = 0
    stream_counter: str = ""
    is_stored: bool = True


class _Unsettled(Struct):
    """used: tokens. spent: cost. is_uncertain: the store did not confirm the reservation, which may still arrive there."""

    held: Reservation
    used: int
    spent: int = 0
    is_uncertain: bool = False
    absent: int = 0


_decode = msgspec.json.Decoder(Reservation).decode


class KeyLimits:
    """The limits of all keys, in one store that any number of processes share. monotonic: a clock that is never set."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._monotonic = monotonic
        self._process = new_id("process_")
        self._unsettled: dict[str, _Unsettled] = {}
        self._beats = 0
        self._seen: dict[
            str, tuple[bytes, float]
        ] = {}  # the sign of life of each process, and since when it is the same

    async def reserve(
        self, key: NamedKey, size: int, max_tokens: int | None, price: Price | None = None
    ) -> Reservation:
        """size: bytes of the request. price: for a key with a budget of money. Raises BadRequest with 429, and GatewayError if the store
        fails."""
        now = self._clock()
        minute = int(now // _MINUTE)
        likely = Usage(input=size // _BYTES_PER_TOKEN, output=max_tokens or _DEFAULT_ANSWER)
        tokens = likely.input + likely.output
        cost = msgspec.structs.replace(price, max_input=0).cost(likely) or 0 if price is not None else 0
        window_end = float((minute + 2) * _MINUTE)
        (budget, budget_end), stream = _budget(key, now), f"streams {key.id}" if key.streams else ""
        changes = [CounterChange(budget, tokens, key.budget or None, budget_end)]
        counted = [(budget, budget_end)]
        if key.requests_per_minute:
            changes.append(CounterChange(f"rpm {key.id} {minute}", 1, key.requests_per_minute, window_end))
        if key.tokens_per_minute:
            counted.append((f"tpm {key.id} {minute}", window_end))
            changes.append(CounterChange(counted[-1][0], tokens, key.tokens_per_minute, window_end))
        if key.max_cost:
            changes.append(CounterChange(_cost(key, now)[0], cost, key.max_cost, budget_end))
        if stream:
            changes.append(CounterChange(stream, 1, key.streams))
        held = Reservation(
            id=new_id("hold_"),
            process=self._process,
            token_counters=tuple(counted),
            tokens=tokens,
            cost_counter=_cost(key, now),
            cost=cost if key.max_cost else 0,
            stream_counter=stream,
        )
        await self._take(changes, held, key, now)
        return held

    def unlimited(self, key: NamedKey) -> Reservation:
        """For a key without limits, whose tokens are counted all the same."""
        now = self._clock()
        return Reservation(
            id=new_id("hold_"),
            process=self._process,
            token_counters=(_budget(key, now),),
            cost_counter=_cost(key, now),
            is_stored=False,
        )

    async def settle(
        self, held: Reservation, usage: Usage | None, *, is_answered: bool, cost: int | None = None
    ) -> None:
        """usage, cost: of the answer. Without one an answered request keeps what it reserved, and a refused one used nothing.

        Raises GatewayError if the store fails; settle_rest() then tries it again.
        """
        used = held.tokens if usage is None and is_answered else 0 if usage is None else usage.input + usage.output
        if used or held.is_stored:
            spent = cost if cost is not None else held.cost if used else 0
            await self._settle(self._remember(_Unsettled(held, used, spent)))

    async def settle_rest(self) -> int:
        """Tries again what could not be settled, and returns how many are still open. Call it regularly."""
        for one in list(self._unsettled.values()):
            try:
                await self._settle(one)
            except GatewayError:
                break
        return len(self._unsettled)

    async def watch(self) -> None:
        """Shows that this process lives, and releases the reservations of dead ones. Call it regularly. Raises GatewayError."""
        try:
            await self._renew()
            holds = [_decode(record.value) for record in await self._store.records(HOLDS)]
            lives = {record.name: record.value for record in await self._store.records(LIVES)}
            now = self._monotonic()
            others = {held.process for held in holds} - {self._process}
            seen = {name: self._since(name, lives.get(name, b""), now) for name in others}
            self._seen = seen
            for held in holds:
                if held.process in seen and now - seen[held.process][1] >= ALIVE_SECONDS:
                    changes = [CounterChange(held.stream_counter, -1)] if held.stream_counter else []
                    await self._store.apply(changes, drop=[(HOLDS, held.id)])
        except GatewayError:
            self._seen.clear()  # the others could not renew theirs either
            raise

    async def leave(self) -> None:
        """The process ends in order."""
        if not await self.settle_rest() and self._beats:
            await self._store.apply(drop=[(LIVES, self._process)])

    async def used(self, key: NamedKey) -> tuple[int, int]:
        """Tokens and cost of the current period."""
        now = self._clock()
        budget, cost = _budget(key, now)[0], _cost(key, now)[0]
        found = await self._store.counters([budget, cost])
        return found.get(budget, 0), found.get(cost, 0)

    async def _take(self, changes: list[CounterChange], held: Reservation, key: NamedKey, now: float) -> None:
        """A client that sends one request after the other may be faster than the end of its last one, so a stream is waited for."""
        waited = 0.0
        while True:
            try:
                full = await self._store.apply(changes, put=[SharedRecord(HOLDS, held.id, msgspec.json.encode(held))])
            except BaseException:  # the store or the client is gone, and the store may have it nevertheless
                self._remember(_Unsettled(held, 0, 0, is_uncertain=True))
                raise
            if not full:
                return
            if full != held.stream_counter or waited >= _PATIENCE:
                raise _refusal(full, key, now)
            waited += _STEP
            await self._sleep(_STEP)

    def _remember(self, one: _Unsettled) -> _Unsettled:
        """Bounded: without the oldest, whose reservations stay counted."""
        if len(self._unsettled) >= _MAX_UNSETTLED:
            del self._unsettled[next(iter(self._unsettled))]
        self._unsettled[one.held.id] = one
        return one

    async def _settle(self, one: _Unsettled) -> None:
        """Has no effect for one that is settled already."""
        held, change = one.held, one.used - one.held.tokens
        changes = [CounterChange(name, change, None, expires) for name, expires in held.token_counters if change]
        if one.spent != held.cost:
            name, expires = held.cost_counter
            changes.append(CounterChange(name, one.spent - held.cost, None, expires))
        if held.stream_counter:
            changes.append(CounterChange(held.stream_counter, -1))
        if held.is_stored:
            absent = await self._store.apply(changes, drop=[(HOLDS, held.id)])
        else:
            changes.append(CounterChange(f"once {held.id}", 1, 1, self._clock() + _ONCE_SECONDS))
            absent = await self._store.apply(changes)
        one.absent += bool(absent)
        if not (one.is_uncertain and absent and one.absent < _MOST_ABSENT):
            self._unsettled.pop(held.id, None)

    async def _renew(self) -> None:
        self._beats += 1
        record = SharedRecord(LIVES, self._process, b"%d" % self._beats, self._clock() + _LIFE_SECONDS)
        await self._store.apply(put=[record])

    def _since(self, process: str, value: bytes, now: float) -> tuple[bytes, float]:
        before = self._seen.get(process)
        return before if before is not None and before[0] == value else (value, now)


class RateLimited(BadRequest):
    """headers: for the client."""

    status = 429
    code = "rate_limit_exceeded"

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.headers = {"retry-after": str(seconds)}


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
    if kind == "cost":
        limit = f"{dollars(key.max_cost):.2f} dollars"
        return RateLimited(f"the key {key.name} has used its budget of {limit} for this {key.period}.", until)
    return RateLimited(f"the key {key.name} has used its budget of {key.budget} tokens for this {key.period}.", until)


def _budget(key: NamedKey, now: float) -> tuple[str, float]:
    """The counter of the current period, and when it expires."""
    form = "%Y-%m-%d" if key.period == "day" else "%Y-%m"
    name = f"budget {key.id} {datetime.fromtimestamp(now, UTC).strftime(form)}"
    return name, _period_end(now, key.period) + _DAY


def _cost(key: NamedKey, now: float) -> tuple[str, float]:
    name, expires = _budget(key, now)
    return f"cost{name.removeprefix('budget')}", expires


def _period_end(now: float, period: str) -> float:
    day = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if period == "day" else calendar.monthrange(day.year, day.month)[1] - day.day + 1
    return day.timestamp() + days * _DAY
