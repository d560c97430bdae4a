"""Stream events: the steps of one model answer, and folding them into a whole.

Each part that starts ends once, and PartEnded carries it complete. Exactly one terminal event (Finished or Failed), and it is the last.
Part indices are dense, from 0, in order of start, over all choices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from msgspec import Struct

from .errors import GatewayError
from .types import Choice, Citation, Extra, Json, Loss, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage


class Started(Struct, frozen=True, kw_only=True, tag="started"):
    id: str
    model: str
    created: int | None = None
    usage: Usage | None = None
    extra: Extra = {}


class PartStarted(Struct, frozen=True, kw_only=True, tag="part_started"):
    """part has its ids and name; its text is still empty."""

    index: int
    part: Part
    choice: int = 0


class PartDelta(Struct, frozen=True, tag="part_delta"):
    """More of a part's text, or of a call's raw arguments."""

    index: int
    text: str
    logprobs: tuple[Json, ...] | None = None


class PartEnded(Struct, frozen=True, kw_only=True, tag="part_ended"):
    index: int
    part: Part
    choice: int = 0


class Noted(Struct, frozen=True, kw_only=True, tag="noted"):
    """Something beside the text; index names the part it belongs to, if any. An Opaque is a wire event of its dialect."""

    note: Usage | Loss | Citation | Opaque
    index: int | None = None


class Finished(Struct, frozen=True, kw_only=True, tag="finished"):
    choices: tuple[Choice, ...]
    usage: Usage | None = None
    extra: Extra = {}


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    error: GatewayError

    def __post_init__(self) -> None:
        self.error.__traceback__ = None  # the event outlives the frames, which hold the request and its body


Event: TypeAlias = Started | PartStarted | PartDelta | PartEnded | Noted | Finished | Failed


class FoldedAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer: what a stream of events adds up to."""

    started: Started
    parts: tuple[PartEnded, ...]
    finished: Finished

    def parts_of(self, choice: int) -> tuple[Part, ...]:
        return tuple(ended.part for ended in self.parts if ended.choice == choice)


class Folder:
    """Collects events; answer() is there once a terminal event has come."""

    def __init__(self) -> None:
        self._started = Started(id="", model="")
        self._parts: dict[int, PartEnded] = {}
        self._finished: Finished | None = None
        self.error: GatewayError | None = None

    def send(self, event: Event) -> None:
        match event:
            case PartDelta() | PartStarted() | Noted():
                pass
            case Started():
                self._started = event
            case PartEnded():
                self._parts[event.index] = event
            case Finished():
                self._finished = event
            case Failed():
                self.error = event.error
            case _:
                assert_never(event)

    @property
    def is_done(self) -> bool:
        return self._finished is not None or self.error is not None

    def answer(self) -> FoldedAnswer:
        if self.error is not None:
            raise self.error.fresh()
        if self._finished is None:
            raise GatewayError("the answer has no end")
        parts = tuple(self._parts[index] for index in sorted(self._parts))
        return FoldedAnswer(started=self._started, parts=parts, finished=self._finished)


def fold(events: Iterable[Event]) -> FoldedAnswer:
    folder = Folder()
    for event in events:
        folder.send(event)
    return folder.answer()


def unfold(answer: FoldedAnswer) -> list[Event]:
    """The shortest stream that folds back to this answer: one delta a part."""
    events: list[Event] = [answer.started]
    for index, ended in enumerate(answer.parts):
        events.append(PartStarted(index=index, part=emptied(ended.part), choice=ended.choice))
        if text := content_of(ended.part):
            logprobs = ended.part.logprobs if isinstance(ended.part, Text) else None
            events.append(PartDelta(index, text, logprobs))
        if isinstance(ended.part, Text) and ended.part.citations:
            events += [Noted(note=citation, index=index) for citation in ended.part.citations]
        events.append(PartEnded(index=index, part=ended.part, choice=ended.choice))
    events.append(answer.finished)
    return events


def emptied(part: Part) -> Part:
    """The part as it is when it starts: ids and name, nothing of its content."""
    match part:
        case Text():
            return Text(text="", item_id=part.item_id, is_continuation=part.is_continuation, extra=part.extra)
        case Refusal():
            return Refusal(text="", item_id=part.item_id, is_continuation=part.is_continuation, extra=part.extra)
        case Reasoning():
            return Reasoning(
                text="",
                redacted=part.redacted,
                item_id=part.item_id,
                is_summary=part.is_summary,
                is_continuation=part.is_continuation,
                extra=part.extra,
            )
        case ToolCall():
            return ToolCall(
                id=part.id,
                name=part.name,
                raw="",
                item_id=part.item_id,
                kind=part.kind,
                namespace=part.namespace,
                extra=part.extra,
            )
        case _:
            return part


def content_of(part: Part) -> str:
    """What the deltas of this part add up to."""
    match part:
        case Text() | Refusal() | Reasoning():
            return part.text
        case ToolCall():
            return part.raw
        case _:
            return ""
