"""Anthropic Messages: answers in, streamed or whole, as canonical events."""

from __future__ import annotations

from typing import Any

import msgspec

from ...events import Answer, Event, Failed, Finished, Noted, PartDelta, PartEnded, Started, unfold
from ...types import Choice, Extra, JsonObject, Opaque, Part, Reason, Reasoning, Request, Text, ToolCall
from ...wire.exact import encode, object_of
from ...wire.sse import Frame
from ..assembly import Growing
from ..base import FrameDecoder, cut, garbage, object_in, shown
from .faults import stream_error
from .shapes import NAME, REASONS, Piece, citation_in, read_delta, usage_in

_MESSAGE = frozenset({"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"})
_HOT = b'{"type":"content_block_delta"'


class _Block:
    """An open content block: whose part it is, and what only its end can tell."""

    __slots__ = ("given", "growing", "signature")

    def __init__(self, growing: Growing, given: JsonObject | None = None) -> None:
        self.growing = growing
        self.given = given  # input that stood in the start already; used only if no fragment comes (H010)
        self.signature = ""


class StreamDecoder(FrameDecoder):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self._blocks: dict[int, _Block] = {}
        self._next = 0
        self._is_started = False
        self._usage: JsonObject = {}
        self._stop: str | None = None
        self._sequence: str | None = None
        self._extra: JsonObject = {}
        self._has_calls = False
        self._empty: Growing | None = None

    def frame(self, frame: Frame) -> list[Event]:
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
            if frame.data == b"[DONE]":  # not of this dialect, but seen from servers that speak both
                self.irregular = self.irregular or "[DONE]"
                return []
            return self.fail(garbage(f"the back end sent an event that is not a JSON object: {shown(frame.data)}"))
        if frame.event != value.get("type"):
            self.irregular = self.irregular or "an event without its name"
        return self._event(value, frame)

    def end(self) -> list[Event]:
        if not self._is_started:
            return self.fail(cut("the back end's stream ended before any answer came."))
        if self._stop is None:
            return self.fail(cut("the back end's stream ended in the middle of the answer."))
        self.irregular = self.irregular or "no end mark"
        return self._finish()

    def _event(self, value: JsonObject, frame: Frame) -> list[Event]:
        match value.get("type"):
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
            case _ if "error" in value:
                return self.fail(stream_error(value, frame.data))
            case _:
                return [Noted(note=Opaque(dialect=NAME, value=value))] if self._is_started else []

    def _start(self, value: JsonObject) -> list[Event]:
        message = value.get("message")
        message = message if isinstance(message, dict) else {}
        if self._is_started or not message.get("id"):
            self.irregular = self.irregular or "a second start, or one without an id"
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
            )
        ]

    def _begin(self) -> list[Event]:
        """Blocks may come from servers that send no message_start."""
        if self._is_started:
            return []
        self.irregular = self.irregular or "no start"
        return self._start({})

    def _open(self, value: JsonObject) -> list[Event]:
        events = self._begin() + self._end_empty()
        index = _index(value)
        if index is None or index != self._next or self._blocks:
            self.irregular = self.irregular or "a block out of order"
        if index is None or index in self._blocks:
            for known in list(self._blocks):
                events += self._close(known)
            index = self._next if index is None else index
        self._next = max(self._next, index) + 1
        block = value.get("content_block")
        block = block if isinstance(block, dict) else {}
        growing, started = self._assembly.start(_opening(block))
        given = block.get("input")
        opened = self._blocks[index] = _Block(growing, given if isinstance(given, dict) and given else None)
        opened.signature = _text(block, "signature")
        events.append(started)
        if block.get("type") == "tool_use":
            self._has_calls = True
            if not _text(block, "name"):
                return events + self.fail(garbage("the back end sent a tool call without a name."))
            if not block.get("id") or not block.get("name") or "input" not in block or given:
                self.irregular = self.irregular or "a call without id, name or empty input"
        for key in ("text", "thinking"):
            if block.get("type") == key and isinstance(text := block.get(key), str) and text:
                growing.pieces.append(text)
                events.append(PartDelta(growing.index, text))
        return events

    def _delta(self, index: int, piece: Piece) -> list[Event]:
        block = self._blocks.get(index)
        if block is None:
            self.irregular = self.irregular or "a delta for a block that is not open"
            return []
        growing = block.growing
        text = piece.text if piece.text is not None else piece.partial_json
        if text is None:
            text = piece.thinking
        if text is not None:
            if isinstance(growing.part, Opaque):
                return [Noted(note=Opaque(dialect=NAME, value=_plain(piece)), index=growing.index)]
            if not text:
                return []
            growing.pieces.append(text)
            return [PartDelta(growing.index, text)]
        if piece.signature is not None:
            block.signature += piece.signature
        return []

    def _slow_delta(self, value: JsonObject) -> list[Event]:
        delta = value.get("delta")
        index = _index(value)
        if index is None and len(self._blocks) == 1:
            index = next(iter(self._blocks))
            self.irregular = self.irregular or "a delta without an index"
        if not isinstance(delta, dict) or index is None or index not in self._blocks:
            self.irregular = self.irregular or "a delta for a block that is not open"
            return []
        growing = self._blocks[index].growing
        if delta.get("type") == "citations_delta" and (citation := citation_in(delta.get("citation"))):
            growing.citations.append(citation)
            return [Noted(note=citation, index=growing.index)]
        known = {key: delta[key] for key in Piece.__struct_fields__ if isinstance(delta.get(key), str)}
        if len(known) > 1 and len(known) == len(delta):
            return self._delta(index, Piece(**known))
        return [Noted(note=Opaque(dialect=NAME, value=delta), index=growing.index)]

    def _close(self, index: int | None) -> list[Event]:
        block = self._blocks.pop(index, None) if index is not None else None
        if block is None:
            self.irregular = self.irregular or "an end for a block that is not open"
            return []
        growing = block.growing
        if isinstance(growing.part, ToolCall) and not growing.pieces and block.given is not None:
            text = encode(block.given).decode()
            growing.pieces.append(text)
            return [PartDelta(growing.index, text), *self._assembly.end(growing)]
        if block.signature and isinstance(growing.part, Reasoning):
            return self._assembly.end(growing, signature=block.signature)
        if isinstance(growing.part, ToolCall) and not growing.pieces:
            self._empty = growing
            return []
        return self._assembly.end(growing)

    def _end_empty(self) -> list[Event]:
        """A call without arguments ends only here: what follows tells whether it has none or was cut before them (H031)."""
        growing, self._empty = self._empty, None
        return [] if growing is None else self._assembly.end(growing, is_cut=self._stop == "max_tokens")

    def _end_of_message(self, value: JsonObject) -> list[Event]:
        events = self._begin()
        delta = value.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if isinstance(stop := delta.get("stop_reason"), str):
            self._stop = stop
            if stop not in REASONS:
                self.irregular = self.irregular or "an unknown stop reason"
            elif (stop == "end_turn" and self._has_calls) or (stop == "tool_use" and not self._has_calls):
                self.irregular = self.irregular or "a stop reason that hides or promises a call"
        self._sequence = delta["stop_sequence"] if isinstance(delta.get("stop_sequence"), str) else self._sequence
        self._extra |= {key: item for key, item in delta.items() if key not in ("stop_reason", "stop_sequence")}
        if isinstance(usage := value.get("usage"), dict):
            self._usage |= {key: item for key, item in usage.items() if item is not None}
        if self._blocks:
            self.irregular = self.irregular or "a block that was never stopped"
        return events + self._end_empty()

    def _finish(self) -> list[Event]:
        if not self._is_started:
            return self.fail(garbage("the back end's stream ended before it began."))
        events: list[Event] = []
        for index in list(self._blocks):
            self.irregular = self.irregular or "a block that was never stopped"
            events += self._close(index)
        events += self._end_empty()
        if self._stop is None:
            self.irregular = self.irregular or "no stop reason"
        self.is_over = True
        choice = Choice(
            reason=_reason(self._stop),
            raw_reason=self._stop or "",
            stop_sequence=self._sequence,
            extra={NAME: self._extra} if self._extra else {},
        )
        events.append(Finished(choices=(choice,), usage=usage_in(self._usage) if self._usage else None))
        return events


def body_events(value: JsonObject) -> tuple[list[Event], str]:
    """A whole answer, and what is irregular in it; an error in a 200 is an error all the same."""
    content = value.get("content")
    if not isinstance(content, list):
        if "error" in value:
            return [Failed(error=stream_error(value, encode(value)))], "an error"
        return [Failed(error=garbage(f"the back end's answer has no content: {shown(encode(value))}"))], "no content"
    usage = value.get("usage")
    stop, sequence = value.get("stop_reason"), value.get("stop_sequence")
    parts = tuple(
        PartEnded(index=index, part=_whole(block)) for index, block in enumerate(content) if isinstance(block, dict)
    )
    choice = Choice(
        reason=_reason(stop if isinstance(stop, str) else None),
        raw_reason=stop if isinstance(stop, str) else "",
        stop_sequence=sequence if isinstance(sequence, str) else None,
    )
    extra: Extra = {NAME: {key: item for key, item in value.items() if key not in _MESSAGE}}
    counted = usage_in(usage) if isinstance(usage, dict) else None
    started = Started(id=str(value.get("id") or ""), model=str(value.get("model") or ""), usage=counted, extra=extra)
    is_regular = bool(started.id) and counted is not None and choice.raw_reason in REASONS
    is_regular = is_regular and all(not _has_faults(block) for block in content)
    answer = Answer(started=started, parts=parts, finished=Finished(choices=(choice,), usage=counted))
    return unfold(answer), "" if is_regular else "an id, usage, stop reason or a call's member is missing"


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
            return ToolCall(id=_text(block, "id"), name=_text(block, "name"), raw="", extra=_rest(block))
        case _:
            return Opaque(dialect=NAME, value=block)


def _whole(block: JsonObject) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            citations = block.get("citations")
            found = [citation_in(item) for item in citations] if isinstance(citations, list) else []
            return Text(text=text, citations=tuple(filter(None, found)))
        case {"type": "thinking", "thinking": str(text)}:
            return Reasoning(text=text, signature=_text(block, "signature") or None)
        case {"type": "redacted_thinking", "data": str(data)}:
            return Reasoning(text="", redacted=data)
        case {"type": "tool_use"}:
            given = block.get("input")
            raw = given if isinstance(given, str) else "{}" if given is None else encode(given).decode()
            raw = raw if raw.strip() else "{}"
            args = given if isinstance(given, dict) else object_of(raw)
            return ToolCall(id=_text(block, "id"), name=_text(block, "name"), raw=raw, args=args, extra=_rest(block))
        case _:
            return Opaque(dialect=NAME, value=block)


def _rest(block: JsonObject) -> Extra:
    members = {key: item for key, item in block.items() if key not in ("type", "id", "name", "input")}
    return {NAME: members} if members else {}


def _reason(raw: str | None) -> Reason:
    return REASONS.get(raw, "other") if raw is not None else "stop"


def _plain(piece: Piece) -> JsonObject:
    return {key: item for key in piece.__struct_fields__ if (item := getattr(piece, key)) is not None}


def _index(value: JsonObject) -> int | None:
    index: Any = value.get("index")
    return index if isinstance(index, int) else None


def _text(value: JsonObject, key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
