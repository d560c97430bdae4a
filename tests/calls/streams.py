"""Answers of a model as events: written down by hand, or any that keeps the contract, sliced in any way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.thorough import examples
from toolwire.calls.schemas import Schemas
from toolwire.calls.tools.names import ToolNames
from toolwire.calls.validation import CallTally, CallValidator, ToolOffer
from toolwire.events import (
    Event,
    Finished,
    Noted,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    content_of,
    emptied,
)
from toolwire.types import Choice, Loss, Opaque, Part, Reason, Reasoning, Text, Tool, ToolCall, Usage
from toolwire.wire.exact_json import object_of

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER = Tool(name="weather", schema=SCHEMA)
RIGHT, REPAIRABLE, WRONG, BROKEN = '{"city": "Oslo"}', '{"city":"Oslo","days":"3"}', "{}", '{"city": "Os'
RAWS = (RIGHT, '{"city":"é中😀", "days":23}', REPAIRABLE, WRONG, '{"town": 1}', BROKEN, "", "no JSON")
_schemas = Schemas()


def checking(*tools: Tool, names: ToolNames | None = None, is_all: bool = True) -> CallValidator:
    return CallValidator(ToolOffer(tools or (WEATHER,), names, is_all=is_all), _schemas, CallTally())


def call(raw: str = RIGHT, name: str = "weather", call_id: str = "c") -> ToolCall:
    return ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw))


def events_of(*parts: Part, reason: Reason = "tool_calls", usage: Usage | None = None) -> list[Event]:
    """One part after the other, each in one delta."""
    events: list[Event] = [Started(id="a", model="m")]
    for index, part in enumerate(parts):
        events += [PartStarted(index=index, part=emptied(part)), *_deltas(index, content_of(part), 1)]
        events.append(PartEnded(index=index, part=part))
    return [*events, Finished(choices=(Choice(reason=reason),), usage=usage)]


def _deltas(index: int, content: str, pieces: int) -> list[Event]:
    size = max(1, -(-len(content) // pieces))
    return [PartDelta(index, content[start : start + size]) for start in range(0, len(content), size)]


_parts = st.one_of(
    st.builds(Text, text=st.text(max_size=12)),
    st.builds(Reasoning, text=st.text(max_size=12), signature=st.none() | st.just("proof")),
    st.builds(
        call, st.sampled_from(RAWS), st.sampled_from(["weather", "functions.weather", "climate"]), st.uuids().map(str)
    ),
    st.just(Opaque(dialect="messages", value={"type": "search"})),
)
_reasons: st.SearchStrategy[Reason] = st.sampled_from(["stop", "tool_calls", "length", "refused", "other"])


@st.composite
def streams(draw: DrawFn, choices: int = 1) -> list[Event]:
    """Parts overlap as they like; indices follow the order of start."""
    waiting = [(draw(st.integers(0, choices - 1)), part) for part in draw(st.lists(_parts, max_size=6))]
    events: list[Event] = [Started(id="a", model="m")]
    running: list[list[Event]] = []
    count = 0
    while waiting or running:
        if waiting and (not running or draw(st.booleans())):
            choice, part = waiting.pop(0)
            events.append(PartStarted(index=count, part=emptied(part), choice=choice))
            steps = _deltas(count, content_of(part), draw(st.integers(1, 3)))
            running.append([*steps, PartEnded(index=count, part=part, choice=choice)])
            count += 1
            continue
        steps = draw(st.sampled_from(running))
        events.append(steps.pop(0))
        if not steps:
            running.remove(steps)
        if draw(st.integers(0, 9)) == 0:
            events.append(Noted(note=draw(st.sampled_from([Usage(input=1), Loss("x", "", "")]))))
    ends = tuple(Choice(reason=draw(_reasons), index=index) for index in range(choices))
    return [*events, Finished(choices=ends, usage=draw(st.none() | st.just(Usage(input=3, output=2))))]


def sliced(events: Sequence[Event], cuts: Sequence[int]) -> list[list[Event]]:
    """The same in pieces, empty ones too."""
    places = [0, *sorted(cut % (len(events) + 1) for cut in cuts), len(events)]
    return [list(events[start:end]) for start, end in pairwise(places)]


quickly = examples(40)
cuts = st.lists(st.integers(0, 1000), max_size=12)
