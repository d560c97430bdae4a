"""The contract of events.py as a checker, for every back end that answers in events, and what such tests need to ask."""

from __future__ import annotations

from collections.abc import Sequence

from toolwire.backends.base import Backend, EventReply
from toolwire.events import (
    Event,
    Failed,
    Finished,
    FoldedAnswer,
    Noted,
    PartDelta,
    PartEnded,
    PartStarted,
    Started,
    content_of,
    emptied,
    fold,
)
from toolwire.types import Message, Request, Text, ToolResult


def check_events(events: Sequence[Event], *, is_cut: bool = False) -> None:
    """Raise AssertionError where a stream breaks the contract; is_cut: it ends without a terminal event."""
    assert isinstance(events[0], Started)
    assert sum(isinstance(event, Started) for event in events) == 1
    terminal = [event for event in events if isinstance(event, Finished | Failed)]
    assert terminal == ([] if is_cut else [events[-1]])
    open_parts = _check_parts(events)
    if isinstance(events[-1], Finished):
        assert not open_parts
        _check_choices(events, events[-1])


def _check_parts(events: Sequence[Event]) -> dict[int, PartStarted]:
    """Give back the parts that never ended."""
    open_parts: dict[int, PartStarted] = {}
    deltas: dict[int, list[PartDelta]] = {}
    for event in events:
        if isinstance(event, PartStarted):
            assert event.index == len(deltas), "indices are dense, from 0, in order of start"
            assert content_of(event.part) == ""
            open_parts[event.index], deltas[event.index] = event, []
        elif isinstance(event, PartDelta):
            assert event.index in open_parts
            assert event.text
            deltas[event.index].append(event)
        elif isinstance(event, PartEnded):
            _check_end(open_parts.pop(event.index), deltas[event.index], event)
        elif isinstance(event, Noted):
            assert event.index is None or event.index in open_parts
    return open_parts


def _check_end(start: PartStarted, deltas: list[PartDelta], end: PartEnded) -> None:
    assert end.choice == start.choice
    assert emptied(end.part) == start.part
    assert content_of(end.part) == "".join(delta.text for delta in deltas)
    if isinstance(end.part, Text):
        told = [entry for delta in deltas for entry in delta.logprobs or ()]
        assert list(end.part.logprobs or ()) == told


def _check_choices(events: Sequence[Event], finished: Finished) -> None:
    indices = [choice.index for choice in finished.choices]
    assert indices == list(range(len(indices)))
    assert {event.choice for event in events if isinstance(event, PartStarted)} <= set(indices)


async def collect(backend: Backend, request: Request) -> list[Event]:
    reply = await backend.open(request, is_verbatim=False)
    assert isinstance(reply, EventReply)
    return [event async for batch in reply.events for event in batch]


async def answer_of(backend: Backend, request: Request) -> FoldedAnswer:
    """The whole answer, with the contract checked."""
    events = await collect(backend, request)
    check_events(events)
    return fold(events)


def user(*texts: str) -> Message:
    return Message(role="user", parts=tuple(Text(text=text) for text in texts))


def assistant(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


def result(call_id: str, text: str, *, is_error: bool = False) -> Message:
    return Message(role="tool", parts=(ToolResult(call_id=call_id, parts=(Text(text=text),), is_error=is_error),))
