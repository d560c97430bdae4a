"""Anthropic Messages: answers in, streamed or whole, as canonical events."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec

from ...errors import UpstreamError
from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartEnded, Started, unfold
from ...types import Choice, Extra, JsonObject, Opaque, Part, Reasoning, Request, Text, ToolCall
from ...wire.exact_json import encode, object_of
from ...wire.fields import is_count, text_in
from ...wire.sse import Frame
from ..base import cut, excerpt, garbage
from ..shared.answer_in import FrameDecoder, OpenPart, is_mark, object_in
from ..shared.errors import error_details
from .errors import stream_error
from .reports import reports
from .shapes import NAME, REASONS, Piece, citation_in, read_delta, reason_of, usage_in

_MESSAGE = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_HOT = b'{"type":"content_block_delta"'
_MEMBERS = {
    "text_delta": "text",
    "input_json_delta": "partial_json",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
_LATEST = 8  # number of recent blocks to search for the block of a stray delta
_NAMELESS = "the back end sent a tool call without a name."


class _Block:
    """An open content block: its part, and what is known only at its end."""

    __slots__ = ("given", "growing", "signature")

    def __init__(self, growing: OpenPart, given: str = "") -> None:
        self.growing = growing
        self.given = given  # input from the start of the block; used only if no fragment follows (H010)
        self.signature = ""


class MessagesStreamDecoder(FrameDecoder):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._blocks: dict[int, _Block] = {}
        self._next = 0
        self._is_started = False
        self._usage: JsonObject = {}
        self._stop: str | None = None
        self._sequence: str | None = None
        self._extra: JsonObject = {}
        self._has_calls = False
        self._empty: OpenPart | None = None
        self._ended: dict[int, OpenPart] = {}  # calls whose block has stopped
        self._is_resumed = False  # content came after the end

    def parse(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        if frame.event == "content_block_delta" and frame.data.startswith(_HOT):
            try:
                event = read_delta(frame.data)
            except (msgspec.DecodeError, UnicodeError):
                pass
            else:
                return self._delta(event.index, event.delta)
        value = object_in(frame)
        if value is None:
            if is_mark(frame.data):  # not part of this dialect; sent by servers that support both
                self.irregular = self.irregular or "[DONE]"
                return []
            return self.fail(garbage(f"the back end sent an event that is not a JSON object: {excerpt(frame.data)}"))
        kind = value.get("type")
        if frame.event != kind:
            self.irregular = self.irregular or "an event without its name"
        return self._event(kind if isinstance(kind, str) else frame.event, value, frame)

    def end(self) -> list[Event]:
        if not self._is_started:
            return self.fail(cut("the back end's stream ended before any answer came."))
        if self._stop is None or self._is_resumed:
            return self.fail(cut("the back end's stream ended in the middle of the answer."))
        self.irregular = self.irregular or "no end mark"
        return self._finish()

    def _event(self, kind: str, value: JsonObject, frame: Frame) -> list[Event]:
        match kind:
            case "message_start":
                return self._start(value)
            case "content_block_start":
                return self._open(value)
            case "content_block_delta":
                return self._slow_delta(value)
            case "content_block_stop":
                return self._close(_index(value))
            case "message_delta":
                return self._end_of_message(value)
            case "message_stop":
                return self._finish()
            case "ping":
                return []
            case "error":
                return self.fail(stream_error(value, frame.data))
            case "message" if not self._is_started:
                return self._whole_answer(value)
            case _ if value.get("error"):
                return self.fail(stream_error(value, frame.data))
            case "":
                return self.fail(garbage(f"the back end sent {excerpt(frame.data)} where an event was expected."))
            case _:
                return [Noted(note=Opaque(dialect=NAME, value=value))] if self._is_started else []

    def _whole_answer(self, value: JsonObject) -> list[Event]:
        """A server that does not stream and sends the whole answer in one event."""
        events, _ = body_events(self._request, value)
        self.irregular = self.irregular or "a body in an event"
        self.is_over = True
        return events

    def _start(self, value: JsonObject) -> list[Event]:
        message = value.get("message")
        message = message if isinstance(message, dict) else {}
        if self._is_started or not _is_opening(message):
            self.irregular = self.irregular or "a second start, or one without id, model, role or usage"
        if message.get("content") != [] or message.get("stop_reason") is not None:
            self.irregular = self.irregular or "a start with content or a stop reason"
        if self._is_started:
            return []
        self._is_started = True
        usage = message.get("usage")
        if isinstance(usage, dict):
            self._usage = dict(usage)
        extra: Extra = {NAME: {key: item for key, item in message.items() if key not in _MESSAGE}}
        return [
            Started(
                id=str(message.get("id") or ""),
                model=str(message.get("model") or ""),
                usage=usage_in(self._usage) if self._usage else None,
                extra=extra,
            ),
            *reports(message, self._request.origin),
        ]

    def _begin(self) -> list[Event]:
        """Some servers send blocks without message_start."""
        if self._is_started:
            return []
        self.irregular = self.irregular or "no start"
        return self._start({})

    def _open(self, value: JsonObject) -> list[Event]:
        events = self._begin() + self._end_empty()
        index, block = _index(value), value.get("content_block")
        if index != value.get("index") or index != self._next or self._blocks or self.is_ending:
            self.irregular = self.irregular or "a block out of order"
        self._is_resumed = self.is_ending
        if not isinstance(block, dict):
            self.irregular = self.irregular or "a block that is no object"
            return events
        if index is None or index in self._blocks:
            for known in list(self._blocks):
                events += self._close(known)
            index = self._next if index is None else index
        self._next = max(self._next, index) + 1
        if block.get("type") == "tool_use":
            self._has_calls = True
            if not text_in(block, "name"):
                return events + self.fail(garbage(_NAMELESS))
            if not text_in(block, "id") or block.get("input") != {}:
                self.irregular = self.irregular or "a call without id or empty input"
        growing, started = self._assembly.start(_opening(block))
        opened = self._blocks[index] = _Block(growing, _given(block.get("input")))
        opened.signature = text_in(block, "signature")
        events.append(started)
        for key in ("text", "thinking"):
            if block.get("type") == key and isinstance(text := block.get(key), str) and text:
                events.append(growing.grow(text))
        return events

    def _delta(self, index: int, piece: Piece) -> list[Event]:
        block = self._blocks.get(index)
        text = piece.text if piece.text is not None else piece.partial_json
        if text is None:
            text = piece.thinking
        if block is None or (text is not None and not _fits(block.growing.part, piece)):
            return self._stray(index, piece)
        growing = block.growing
        if text is not None:
            if isinstance(growing.part, Opaque):
                return [Noted(note=Opaque(dialect=NAME, value=_plain(piece)), index=growing.index)]
            if not text:
                return []
            return [self.only_grows(growing).grow(text)]
        if piece.signature is not None:
            block.signature += piece.signature
        else:
            self.irregular = self.irregular or "a delta without content"
        return []

    def _stray(self, index: int, piece: Piece) -> list[Event]:
        """A delta for a block that is not open or of another kind. No text may be lost, and no call invented."""
        self.irregular = self.irregular or "a delta for a block that is not open"
        self._is_resumed = self.is_ending
        for known in islice(reversed(self._blocks), _LATEST):
            if _fits(self._blocks[known].growing.part, piece):
                return self._delta(known, piece)
        if piece.text or piece.thinking:
            growing, started = self._assembly.start(Text(text="") if piece.text else Reasoning(text=""))
            place = index if index not in self._blocks else -1 - index
            self._next = max(self._next, index + 1)
            self._blocks[place] = _Block(growing)
            return [*self._begin(), *self._end_empty(), started, *self._delta(place, piece)]
        if not piece.partial_json:
            return []
        ended = self._ended.get(index)
        if ended is None:
            return self.fail(garbage(_NAMELESS))
        if object_of(ended.content or "{}") is None:
            return self.fail(garbage("the back end went on with a call that it had ended."))
        return []  # complete arguments cannot go on: a copy (H015)

    def _slow_delta(self, value: JsonObject) -> list[Event]:
        delta = value.get("delta")
        index = _index(value)
        if index is None:
            index = next(reversed(self._blocks), self._next)
            self.irregular = self.irregular or "a delta without an index"
        if not isinstance(delta, dict):
            self.irregular = self.irregular or "a delta that is no object"
            return []
        block = self._blocks.get(index)
        growing = None if block is None else block.growing
        if growing is not None and delta.get("type") == "citations_delta":
            citation = citation_in(delta.get("citation"))
            if citation is not None:
                growing.citations.append(citation)
                return [Noted(note=citation, index=growing.index)]
        member = _MEMBERS.get(str(delta.get("type"))) or next((key for key in _MEMBERS.values() if key in delta), "")
        if not member:
            place = None if growing is None else growing.index
            if growing is not None and isinstance(growing.part, Opaque) and delta.get("type") == "compaction_delta":
                content = {key: item for key, item in delta.items() if key != "type"}
                growing.part = Opaque(dialect=NAME, value={**growing.part.value, **content})
            return [Noted(note=Opaque(dialect=NAME, value=delta), index=place)] if self._is_started else []
        if len(delta) != 2 or not isinstance(delta.get(member), str) or _MEMBERS.get(str(delta.get("type"))) != member:
            self.irregular = self.irregular or "a delta of an odd form"
        found = delta.get(member)
        text = found if isinstance(found, str) else "" if found is None else encode(found).decode()
        return self._delta(index, Piece(type=str(delta.get("type")), **{member: text}))

    def _close(self, index: int | None) -> list[Event]:
        if index is None and len(self._blocks) == 1:
            self.irregular = self.irregular or "an end without an index"
            index = next(iter(self._blocks))
        block = self._blocks.pop(index, None) if index is not None else None
        if block is None or index is None:
            self.irregular = self.irregular or "an end for a block that is not open"
            return []
        growing = block.growing
        if isinstance(growing.part, ToolCall):
            return self._close_call(index, growing, block.given)
        if block.signature and isinstance(growing.part, Reasoning):
            return self._assembly.end(growing, signature=block.signature)
        return self._assembly.end(growing)

    def _close_call(self, index: int, growing: OpenPart, given: str) -> list[Event]:
        self._ended[index] = growing
        if not growing.is_empty:
            if not growing.content.strip():
                self.irregular = self.irregular or "a call without arguments"
            return self._assembly.end(growing)
        if given:
            return [growing.grow(given), *self._assembly.end(growing)]
        self._empty = growing
        return []

    def _end_empty(self) -> list[Event]:
        """A call without arguments ends only here: what follows shows whether it has none or was cut before them (H031)."""
        growing, self._empty = self._empty, None
        return [] if growing is None else self._assembly.end(growing, is_cut=self._is_cut)

    @property
    def _is_cut(self) -> bool:
        return reason_of(self._stop) in ("length", "refused")

    def _end_of_message(self, value: JsonObject) -> list[Event]:
        events = self._begin()
        events += reports(value, self._request.origin)
        delta, usage = value.get("delta"), value.get("usage")
        if not isinstance(delta, dict) or not {"stop_reason", "stop_sequence"} <= set(delta) or self.is_ending:
            self.irregular = self.irregular or "a second end, or one without its members"
        delta = delta if isinstance(delta, dict) else {}
        if isinstance(stop := delta.get("stop_reason"), str):
            self._stop = stop
            if stop not in REASONS:
                self.irregular = self.irregular or "an unknown stop reason"
            elif (stop == "end_turn" and self._has_calls) or (stop == "tool_use" and not self._has_calls):
                self.irregular = self.irregular or "a stop reason that hides or promises a call"
        self._sequence = delta["stop_sequence"] if isinstance(delta.get("stop_sequence"), str) else self._sequence
        self._extra |= {key: item for key, item in delta.items() if key not in ("stop_reason", "stop_sequence")}
        if isinstance(usage, dict):
            self._usage |= {key: item for key, item in usage.items() if item is not None}
        if not isinstance(usage, dict) or not is_count(usage.get("output_tokens")):
            self.irregular = self.irregular or "no usage, or one that is no count"
        if self._blocks:
            self.irregular = self.irregular or "a block that was never stopped"
        self.is_ending = True
        self._is_resumed = False
        return events + self._end_empty()

    def _finish(self) -> list[Event]:
        if not self._is_started:
            return self.fail(garbage("the back end's stream ended before it began."))
        reason = reason_of(self._stop)
        if reason is None:
            return self.fail(UpstreamError("the back end ended its answer with an error and no message."))
        if not self._is_cut and any(_is_half(block.growing) for block in self._blocks.values()):
            return self.fail(cut("the back end ended its answer in the middle of a call."))
        events: list[Event] = []
        for index in list(self._blocks):
            self.irregular = self.irregular or "a block that was never stopped"
            events += self._close(index)
        events += self._end_empty()
        if self._stop is None:
            self.irregular = self.irregular or "no stop reason"
        self.is_over = True
        choice = Choice(
            reason=reason,
            raw_reason=self._stop or "",
            stop_sequence=self._sequence,
            extra={NAME: self._extra} if self._extra else {},
        )
        events.append(Finished(choices=(choice,), usage=usage_in(self._usage) if self._usage else None))
        return events


def body_events(request: Request, value: JsonObject) -> tuple[list[Event], str]:
    """The events of a whole answer, and what is irregular in it. An error with status 200 is an error."""
    content = value.get("content")
    if value.get("error") or (content is None and error_details(value)):
        return [Failed(error=stream_error(value, encode(value)))], "an error"
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return [Failed(error=garbage(f"the back end's answer has no content: {excerpt(encode(value))}"))], "no content"
    usage = value.get("usage")
    stop, sequence = value.get("stop_reason"), value.get("stop_sequence")
    parts = tuple(
        PartEnded(index=index, part=_whole(block)) for index, block in enumerate(content) if isinstance(block, dict)
    )
    reason = reason_of(stop if isinstance(stop, str) else None)
    if reason is None:
        return [Failed(error=UpstreamError("the back end ended its answer with an error."))], "an error"
    if any(isinstance(ended.part, ToolCall) and not ended.part.name for ended in parts):
        return [Failed(error=garbage(_NAMELESS))], "a call without a name"
    choice = Choice(
        reason=reason,
        raw_reason=stop if isinstance(stop, str) else "",
        stop_sequence=sequence if isinstance(sequence, str) else None,
    )
    extra: Extra = {NAME: {key: item for key, item in value.items() if key not in _MESSAGE}}
    counted = usage_in(usage) if isinstance(usage, dict) else None
    started = Started(id=str(value.get("id") or ""), model=str(value.get("model") or ""), usage=counted, extra=extra)
    is_regular = _is_opening(value) and choice.raw_reason in REASONS and content is value["content"]
    is_regular = is_regular and all(not _has_faults(block) for block in content)
    answer = FoldedAnswer(started=started, parts=parts, finished=Finished(choices=(choice,), usage=counted))
    events = unfold(answer)
    events[1:1] = reports(value, request.origin)
    return events, "" if is_regular else "an id, usage, stop reason or a call's member is missing"


def _has_faults(block: Any) -> bool:
    if not isinstance(block, dict):
        return True
    return block.get("type") == "tool_use" and not isinstance(block.get("input"), dict)


def _opening(block: JsonObject) -> Part:
    match block:
        case {"type": "text"}:
            return Text(text="")
        case {"type": "thinking"}:
            return Reasoning(text="")
        case {"type": "redacted_thinking", "data": str(data)}:
            return Reasoning(text="", redacted=data)
        case {"type": "tool_use"}:
            return ToolCall(id=text_in(block, "id"), name=text_in(block, "name"), raw="", extra=_rest(block))
        case _:
            return Opaque(dialect=NAME, value=block)


def _whole(block: JsonObject) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            citations = block.get("citations")
            found = [citation_in(item) for item in citations] if isinstance(citations, list) else []
            return Text(text=text, citations=tuple(filter(None, found)))
        case {"type": "thinking", "thinking": str(text)}:
            return Reasoning(text=text, signature=text_in(block, "signature") or None)
        case {"type": "redacted_thinking", "data": str(data)}:
            return Reasoning(text="", redacted=data)
        case {"type": "tool_use"}:
            given = block.get("input")
            raw = given if isinstance(given, str) else "{}" if given is None else encode(given).decode()
            raw = raw if raw.strip() else "{}"
            args = given if isinstance(given, dict) else object_of(raw)
            return ToolCall(
                id=text_in(block, "id"), name=text_in(block, "name"), raw=raw, args=args, extra=_rest(block)
            )
        case _:
            return Opaque(dialect=NAME, value=block)


def _rest(block: JsonObject) -> Extra:
    members = {key: item for key, item in block.items() if key not in ("type", "id", "name", "input")}
    return {NAME: members} if members else {}


def _is_opening(message: JsonObject) -> bool:
    """Whether a message has what every one has, at its start or whole."""
    usage = message.get("usage")
    is_counted = isinstance(usage, dict) and all(is_count(usage.get(key)) for key in ("input_tokens", "output_tokens"))
    return is_counted and message.get("role") == "assistant" and all(text_in(message, key) for key in ("id", "model"))


def _given(value: Any) -> str:
    """Input that came with the start of its block."""
    return value if isinstance(value, str) else encode(value).decode() if value else ""


def _fits(part: Part, piece: Piece) -> bool:
    if piece.text is not None:
        return isinstance(part, Text | Opaque)
    if piece.partial_json is not None:
        return isinstance(part, ToolCall | Opaque)
    return isinstance(part, Reasoning | Opaque)


def _is_half(growing: OpenPart) -> bool:
    """A call whose arguments have begun and are not complete."""
    content = growing.content if isinstance(growing.part, ToolCall) else ""
    return bool(content.strip()) and object_of(content) is None


def _plain(piece: Piece) -> JsonObject:
    return {key: item for key in piece.__struct_fields__ if (item := getattr(piece, key)) is not None}


def _index(value: JsonObject) -> int | None:
    index: Any = value.get("index")
    if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 10:
        return int(index)
    return index if isinstance(index, int) else None
