"""Damage for replayed answers, to test how an agent takes failures: a cut stream, a refusal, a stall, broken arguments."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from ...errors import ConfigError, UpstreamError, quote
from ...events import Event, Finished, PartDelta, PartEnded
from ...types import ToolCall

Sleep = Callable[[float], Awaitable[None]]
STALL_SECONDS = 3600.0
_FORM = re.compile(r"(cut|429|500|stall|arguments)(?:@(\d{1,6}))?")


class InjectedDamage(Struct, frozen=True):
    """answer: which one it is for, counted from 1; 0 is every answer."""

    kind: str
    answer: int = 0


def parse_damage(text: str, where: str = "damage") -> InjectedDamage:
    """KIND or KIND@N. Raises ConfigError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"found {quote(text)}; expected cut, 429, 500, stall or arguments, with @N for the Nth answer alone.",
            where=where,
        )
    return InjectedDamage(found[1], int(found[2] or 0))


def refusal(kinds: set[str]) -> UpstreamError | None:
    if "429" in kinds:
        headers = {"retry-after": "1"}
        return UpstreamError("the replay refuses this request.", status=429, code="rate_limited", headers=headers)
    if "500" in kinds:
        return UpstreamError("the replay fails this request.", status=500, code="injected_failure")
    return None


async def damaged(batches: AsyncIterator[list[Event]], kinds: set[str], sleep: Sleep) -> AsyncIterator[list[Event]]:
    """A cut or a stall comes after half of the answer."""
    if not kinds & {"cut", "stall", "arguments"}:
        async for batch in batches:
            yield batch
        return
    events = [event async for batch in batches for event in batch]
    if "arguments" in kinds:
        events = [_broken(event) for event in events]
    if kinds & {"cut", "stall"}:
        events = _first_half(events)
    for event in events:
        yield [event]
    if "stall" in kinds:
        await sleep(STALL_SECONDS)


def _first_half(events: list[Event]) -> list[Event]:
    """Up to the delta in the middle; without deltas, everything but the end."""
    deltas = [place for place, event in enumerate(events) if isinstance(event, PartDelta)]
    if len(deltas) > 1:
        return events[: deltas[len(deltas) // 2]]
    return [event for event in events if not isinstance(event, Finished)]


def _broken(event: Event) -> Event:
    """Arguments without their closing brace."""
    if isinstance(event, PartDelta) and event.text.endswith("}"):
        return replace(event, text=event.text[:-1])
    if isinstance(event, PartEnded) and isinstance(event.part, ToolCall):
        return replace(event, part=replace(event.part, raw=event.part.raw.removesuffix("}"), args=None))
    return event
