"""OpenAI Responses: answers in, streamed or whole, as canonical events."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from ...errors import UpstreamError
from ...events import Answer, Event, Failed, Finished, Noted, PartDelta, PartEnded, Started, emptied, unfold
from ...types import Choice, JsonObject, Opaque, Part, Reason, Reasoning, Refusal, Request, Text, ToolCall
from ...wire.exact import encode
from ...wire.sse import Frame
from ..assembly import Growing
from ..base import FrameDecoder, cut, garbage, object_in, shown
from ..faults import error_from
from .shapes import NAME, call_in, citation_in, parts_in, read_delta, usage_in

_HOT = (b'{"type":"response.output_text.delta"', b'{"type":"response.function_call_arguments.delta"')
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_OPENINGS = ("response.created", "response.in_progress", "response.queued")
_CALLS = ("function_call", "custom_tool_call")
_NAMELESS = "the back end sent a tool call without a name."
_LATEST = 10**12
_CODES = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400, "context_length_exceeded": 400}


class _Item:
    """One output item under construction: its parts by their place in it."""

    __slots__ = ("held", "id", "last", "parts", "value")

    def __init__(self, value: JsonObject) -> None:
        self.value = value
        self.id = str(value.get("id") or "")
        self.parts: dict[tuple[str, int], Growing] = {}
        self.last: Growing | None = None  # a reasoning part whose end waits for what the item's end tells
        self.held: list[str] = []  # arguments of a call whose name is not known yet

    @property
    def is_nameless(self) -> bool:
        """A call that never started, because nobody can call a tool without a name."""
        return not self.parts and (bool(self.held) or self.value.get("type") in _CALLS)


class StreamDecoder(FrameDecoder):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self._items: dict[int, _Item] = {}
        self._is_started = False
        self._done: set[int] = set()
        self._has_calls = False
        self._sequence = -1

    def frame(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        if frame.data.startswith(_HOT):
            try:
                event = read_delta(frame.data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                pass
            else:
                item = self._items.get(event.output_index)
                kind = "text" if event.type == "response.output_text.delta" else "call"
                growing = item.parts.get((kind, event.content_index)) if item is not None else None
                is_next = event.sequence_number == self._sequence + 1 and frame.event == event.type
                if growing is not None and is_next and item is not None and event.item_id == item.id:
                    self._sequence += 1
                    logprobs = tuple(event.logprobs) if event.logprobs else None
                    return self._grow(growing, event.delta, logprobs)
        return self._slow(frame)

    def end(self) -> list[Event]:
        where = "in the middle of the answer" if self._is_started else "before any answer came"
        return self.fail(cut(f"the back end's stream ended {where}."))

    def _slow(self, frame: Frame) -> list[Event]:
        value = object_in(frame)
        if value is None:
            if frame.data == b"[DONE]":
                return self.end()
            return self.fail(garbage(f"the back end sent an event that is not a JSON object: {shown(frame.data)}"))
        kind = value.get("type")
        kind = kind if isinstance(kind, str) else frame.event
        if frame.event != kind or value.get("sequence_number") != self._sequence + 1:
            self.irregular = self.irregular or "an event without its name or out of sequence"
        number = value.get("sequence_number")
        self._sequence = number if isinstance(number, int) else self._sequence + 1
        return self._event(kind, value, frame)

    def _event(self, kind: str, value: JsonObject, frame: Frame) -> list[Event]:
        if kind in _OPENINGS:
            return self._start(value)
        if kind in _ENDS:
            return self._finish(kind, value)
        if kind == "error" or (value.get("error") and "output_index" not in value):
            return self.fail(_failure(value.get("error") or value, frame.data))
        index = value.get("output_index")
        if not isinstance(index, int):
            return [Noted(note=Opaque(dialect=NAME, value=value))] if self._is_started else []
        events = self._begin()
        if kind == "response.output_item.added":
            return events + self._add(index, value.get("item"))
        if index in self._done:
            self.irregular = self.irregular or "an event for an item that is done"
            return events
        item = self._items.get(index)
        if item is None:
            self.irregular = self.irregular or "an event for an item that was not added"
            events += self._add(index, value.get("item") or {"type": _ITEM_OF.get(kind, "message"), "id": ""})
            item = self._items[index]
        if kind == "response.output_item.done":
            return events + self._end_item(index, item, value.get("item"))
        return events + self._inside(kind, item, value)

    def _start(self, value: JsonObject) -> list[Event]:
        if self._is_started:
            return []
        self._is_started = True
        response = value.get("response")
        response = response if isinstance(response, dict) else {}
        if not response.get("id"):
            self.irregular = self.irregular or "an answer without an id"
        return [_started(response)]

    def _begin(self) -> list[Event]:
        if self._is_started:
            return []
        self.irregular = self.irregular or "no response.created"
        return self._start({})

    def _add(self, index: int, value: Any) -> list[Event]:
        value = value if isinstance(value, dict) else {}
        if index != len(self._items) or not value.get("id"):
            self.irregular = self.irregular or "an item out of order or without an id"
        item = self._items[index] = _Item(value)
        self._done.discard(index)
        match value.get("type"):
            case "message" | "reasoning":
                return []
            case "function_call" | "custom_tool_call":
                self._has_calls = True
                if not value.get("call_id") or not value.get("name"):
                    self.irregular = self.irregular or "a call without call_id or name"
                call = call_in(value)
                if not call.name:
                    return []
                return self._open(item, ("call", 0), msgspec.structs.replace(call, raw="", args=None))
            case _:
                return self._open(item, ("opaque", 0), Opaque(dialect=NAME, value=value))

    def _open(self, item: _Item, key: tuple[str, int], part: Part) -> list[Event]:
        growing, started = self._assembly.start(part)
        item.parts[key] = growing
        return [started]

    def _grow(self, growing: Growing, text: str, logprobs: tuple[Any, ...] | None = None) -> list[Event]:
        if not self._assembly.is_open(growing):
            self.irregular = self.irregular or "a delta for a part that is done"
            return []
        if not text:
            return []
        growing.pieces.append(text)
        if logprobs:
            growing.logprobs += logprobs
        return [PartDelta(growing.index, text, logprobs)]

    def _inside(self, kind: str, item: _Item, value: JsonObject) -> list[Event]:
        if item.id and value.get("item_id", item.id) != item.id:
            self.irregular = self.irregular or "an event with another item's id"
        known = _INSIDE.get(kind)
        if known is None:
            growing = item.parts.get(("opaque", 0))
            index = growing.index if growing is not None else None
            return [Noted(note=Opaque(dialect=NAME, value=value), index=index)]
        action, slot, member = known
        place = value.get("summary_index" if slot == "summary" else "content_index")
        key = (slot, place if isinstance(place, int) and slot != "call" else 0)
        events: list[Event] = []
        growing = item.parts.get(key)
        if growing is None:
            if action != "open":
                self.irregular = self.irregular or "a delta before its part"
            if slot == "call" and action == "delta":
                item.held.append(_text(value, member))
            if slot == "call" or action == "close":
                return []
            events += self._open_slot(item, key, value)
            growing = item.parts[key]
        if action == "delta":
            logprobs = value.get("logprobs")
            found = tuple(logprobs) if isinstance(logprobs, list) and logprobs else None
            return events + self._grow(growing, _text(value, member), found)
        if action == "whole":
            return events + self._fill(growing, _text(value, member))
        if action == "cite" and (citation := citation_in(value.get("annotation"))):
            growing.citations.append(citation)
            events.append(Noted(note=citation, index=growing.index))
        elif action == "close":
            events += self._close(item, growing)
        return events

    def _open_slot(self, item: _Item, key: tuple[str, int], value: JsonObject) -> list[Event]:
        """A part's kind is told by content_part.added, or by the delta that came without one."""
        given = value.get("part")
        kind = given.get("type") if isinstance(given, dict) else None
        slot = key[0]
        events: list[Event] = []
        if slot == "summary" or kind == "reasoning_text" or slot == "thought":
            if item.last is not None:
                events += self._assembly.end(item.last)
            part: Part = Reasoning(text="", item_id=item.id, is_summary=slot == "summary", extra={NAME: {}})
            events += self._open(item, key, part)
            item.last = item.parts[key]
            if kind == "reasoning_text":
                item.parts[("thought", key[1])] = item.last
            return events
        if kind == "refusal" or slot == "refusal":
            events += self._open(item, key, Refusal(text="", item_id=item.id))
            item.parts[("refusal", key[1])] = item.parts[key]
            return events
        return self._open(item, key, Text(text="", item_id=item.id))

    def _fill(self, growing: Growing, text: str, logprobs: tuple[Any, ...] | None = None) -> list[Event]:
        """A full copy after the pieces only fills what is missing (H015)."""
        part = growing.part
        if isinstance(part, ToolCall) and part.kind == "function" and not (growing.content + text).strip():
            self.irregular = self.irregular or "a call without arguments"
        content = growing.content
        if len(text) <= len(content) or not text.startswith(content) or not self._assembly.is_open(growing):
            return []
        self.irregular = self.irregular or "a text without its deltas"
        return self._grow(growing, text[len(content) :], logprobs if not content else None)

    def _close(self, item: _Item, growing: Growing) -> list[Event]:
        if growing is item.last:
            return []
        return self._assembly.end(growing)

    def _end_item(self, index: int, item: _Item, value: Any) -> list[Event]:
        self._done.add(index)
        value = value if isinstance(value, dict) else item.value
        whole = parts_in(value)
        if not item.parts:
            return self._unstreamed(item, whole)
        events: list[Event] = []
        encrypted = next((part.encrypted for part in whole if isinstance(part, Reasoning) and part.encrypted), None)
        for growing in dict.fromkeys(item.parts.values()):
            part = _same(whole, growing.part)
            events += self._complete(growing, part, encrypted if growing is item.last else None)
        for part in whole:
            if getattr(part, "text", ""):
                events += self._whole(part)
        return events

    def _unstreamed(self, item: _Item, whole: list[Part]) -> list[Event]:
        """An item of which only the end has come."""
        events: list[Event] = []
        for part in whole:
            if isinstance(part, ToolCall) and not part.name:
                return events + self.fail(garbage(_NAMELESS))
            if isinstance(part, ToolCall) and item.held and part.raw == "{}":
                part = msgspec.structs.replace(part, raw="".join(item.held))
            events += self._whole(part)
        return events

    def _whole(self, part: Part) -> list[Event]:
        if not isinstance(part, Reasoning) or part.text:
            self.irregular = self.irregular or "an item that was not streamed"
        growing, started = self._assembly.start(emptied(part))
        return [started, *self._complete(growing, part, part.encrypted if isinstance(part, Reasoning) else None)]

    def _complete(self, growing: Growing, whole: Part | None, encrypted: str | None) -> list[Event]:
        """End a part with what only the finished item tells."""
        match growing.part, whole:
            case ToolCall(), ToolCall(raw=raw):
                return self._fill(growing, raw) + self._assembly.end(growing, is_cut=not raw)
            case Text(), Text():
                events = self._fill(growing, whole.text, whole.logprobs)
                growing.citations = growing.citations or list(whole.citations)
                return events + self._assembly.end(growing)
            case Refusal(), Refusal(text=text):
                return self._fill(growing, text) + self._assembly.end(growing)
            case Reasoning(), _:
                events = self._fill(growing, whole.text) if isinstance(whole, Reasoning) else []
                return events + self._assembly.end(growing, encrypted=encrypted)
            case Opaque(), Opaque():
                growing.part = whole
        return self._assembly.end(growing)

    def _finish(self, kind: str, value: JsonObject) -> list[Event]:
        response = value.get("response")
        response = response if isinstance(response, dict) else {}
        events = self._begin()
        if kind in ("response.failed", "response.cancelled"):
            return events + self.fail(_failure(response.get("error"), encode(response)))
        events += self._missing_items(response.get("output"))
        if any(item.is_nameless for index, item in self._items.items() if index not in self._done):
            events += self.fail(garbage(_NAMELESS))
        if self.is_over:
            return events
        if self._assembly.open:
            self.irregular = self.irregular or "an item that was never done"
            events += self._assembly.end_all(is_cut=kind == "response.incomplete")
        self.is_over = True
        usage = response.get("usage")
        if not isinstance(usage, dict):
            self.irregular = self.irregular or "no usage"
        raw, reason = _reason(response, self._has_calls)
        counted = usage_in(usage) if isinstance(usage, dict) else None
        finished = Finished(
            choices=(Choice(reason=reason, raw_reason=raw),), usage=counted, extra={NAME: _members(response)}
        )
        return [*events, finished]

    def _missing_items(self, output: Any) -> list[Event]:
        """Items whose end, or all of them, only the final object shows."""
        events: list[Event] = []
        for index, item in enumerate(output if isinstance(output, list) else ()):
            if not isinstance(item, dict) or index in self._done or self.is_over:
                continue
            self.irregular = self.irregular or "an item that was not streamed"
            if index not in self._items:
                events += self._add(index, item)
            events += self._end_item(index, self._items[index], item)
        return events


def _same(whole: list[Part], part: Part) -> Part | None:
    """The first of the finished parts that this one can have become; it is taken out of the list."""
    for place, found in enumerate(whole):
        is_summary = getattr(part, "is_summary", None)
        if type(found) is type(part) and getattr(found, "is_summary", None) == is_summary:
            return whole.pop(place)
    return None


# event -> what it does, in which slot of the item, and the member that holds its text
_INSIDE: dict[str, tuple[str, str, str]] = {
    "response.content_part.added": ("open", "text", ""),
    "response.content_part.done": ("close", "text", ""),
    "response.output_text.delta": ("delta", "text", "delta"),
    "response.output_text.done": ("whole", "text", "text"),
    "response.output_text.annotation.added": ("cite", "text", ""),
    "response.refusal.delta": ("delta", "refusal", "delta"),
    "response.refusal.done": ("whole", "refusal", "refusal"),
    "response.function_call_arguments.delta": ("delta", "call", "delta"),
    "response.function_call_arguments.done": ("whole", "call", "arguments"),
    "response.custom_tool_call_input.delta": ("delta", "call", "delta"),
    "response.custom_tool_call_input.done": ("whole", "call", "input"),
    "response.reasoning_summary_part.added": ("open", "summary", ""),
    "response.reasoning_summary_part.done": ("close", "summary", ""),
    "response.reasoning_summary_text.delta": ("delta", "summary", "delta"),
    "response.reasoning_summary_text.done": ("whole", "summary", "text"),
    "response.reasoning_text.delta": ("delta", "thought", "delta"),
    "response.reasoning_text.done": ("whole", "thought", "text"),
}
_ITEM_OF = {
    "response.function_call_arguments.delta": "function_call",
    "response.function_call_arguments.done": "function_call",
    "response.reasoning_summary_part.added": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
}


def body_events(value: JsonObject) -> tuple[list[Event], str]:
    """A whole answer, and what is irregular in it; an error in a 200 is an error all the same."""
    output = value.get("output")
    if value.get("status") in ("failed", "cancelled") or (value.get("error") and not output):
        return [Failed(error=_failure(value.get("error"), encode(value)))], "an error"
    if not isinstance(output, list):
        return [Failed(error=garbage(f"the back end's answer has no output: {shown(encode(value))}"))], "no output"
    parts = [part for item in output if isinstance(item, dict) for part in parts_in(item)]
    usage = value.get("usage")
    raw, reason = _reason(value, any(isinstance(part, ToolCall) for part in parts))
    finished = Finished(
        choices=(Choice(reason=reason, raw_reason=raw),),
        usage=usage_in(usage) if isinstance(usage, dict) else None,
        extra={NAME: _members(value)},
    )
    ended = tuple(PartEnded(index=index, part=part) for index, part in enumerate(parts))
    is_regular = bool(value.get("id") and value.get("status") in ("completed", "incomplete") and finished.usage)
    is_regular = is_regular and all(isinstance(item, dict) and _is_complete(item) for item in output)
    answer = Answer(started=_started(value), parts=ended, finished=finished)
    return unfold(answer), "" if is_regular else "an id, the status or the usage is missing"


def _is_complete(item: JsonObject) -> bool:
    return bool(item.get("id")) and (item.get("type") != "function_call" or bool(_text(item, "arguments").strip()))


def _started(response: JsonObject) -> Started:
    return Started(
        id=str(response.get("id") or ""),
        model=str(response.get("model") or ""),
        created=_seconds(response.get("created_at")),
        extra={NAME: _members(response)},
    )


def _seconds(value: Any) -> int | None:
    """Whole seconds; some servers send fractions, and anything can come."""
    if isinstance(value, Decimal) and 0 <= value < _LATEST:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < _LATEST else None


def _members(response: JsonObject) -> JsonObject:
    """The response object without what the events themselves say."""
    spoken = ("id", "object", "model", "output", "status", "usage", "created_at", "error", "incomplete_details")
    return {key: value for key, value in response.items() if key not in spoken}


def _reason(response: JsonObject, has_calls: bool) -> tuple[str, Reason]:
    if response.get("status") == "incomplete":
        details = response.get("incomplete_details")
        raw = str(details.get("reason") or "") if isinstance(details, dict) else ""
        return raw, "refused" if raw == "content_filter" else "length"
    return str(response.get("status") or ""), "tool_calls" if has_calls else "stop"


def _failure(value: Any, body: bytes) -> UpstreamError:
    details = value if isinstance(value, dict) else {"message": value} if isinstance(value, str) else {}
    status = _CODES.get(str(details.get("code")), 502)
    return error_from(status, {"error": details}, body, {})


def _text(value: JsonObject, key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
