"""OpenAI Responses: streamed answers in, as canonical events."""

from __future__ import annotations

from typing import Any

import msgspec

from ...events import Event, Finished, Noted, emptied
from ...types import Choice, JsonObject, Opaque, Part, Reasoning, Refusal, Request, Text, ToolCall
from ...wire.exact_json import encode
from ...wire.fields import text_in
from ...wire.sse import Frame
from ..base import cut, excerpt, garbage
from ..shared.answer_in import FrameDecoder, OpenCallPart, OpenPart, is_mark, object_in
from .body_in import LOST_PHASE, NAMELESS, body_events, failure, is_counted, members, reason_of, started
from .open_items import CALLS, OpenItem, OpenItems, matched, same_part
from .shapes import NAME, call_in, citation_in, parts_in, phase_in, read_delta, usage_in

_HOT = (b'{"type":"response.output_text.delta"', b'{"type":"response.function_call_arguments.delta"')
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_OPENINGS = ("response.created", "response.in_progress", "response.queued")
_NAMING = ("id", "call_id", "name")  # what identifies an item, at its start and at its end
_UNHAPPY = ("incomplete", "failed", "cancelled")
_INCOMPLETE = ("max_output_tokens", "content_filter")
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
_ABOUT_ITEMS = ("response.output_item.added", "response.output_item.done")


class ResponsesStreamDecoder(FrameDecoder):
    """Order and indexes of items are our own. Frames carry sequence numbers, so no two are alike and each one is parsed.

    An item ends with an event of its own. If a server omits that event or interleaves items, texts and complete calls end as soon as an event
    for another item arrives, so that encoders which write one part at a time can go on.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request
        self._items = OpenItems()
        self._is_started = False
        self._has_calls = self._has_lost_phase = False
        self._sequence = -1

    def parse(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        if frame.data.startswith(_HOT) and (events := self._delta(frame)) is not None:
            return events
        return self._slow(frame)

    def _delta(self, frame: Frame) -> list[Event] | None:
        """Fast path for a regular delta of an open part, which is nearly every event. None: take the general path."""
        try:
            event = read_delta(frame.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        item = self._items.current
        if item is None or item.is_left or item.id != event.item_id or item is not self._items.at(event.output_index):
            return None
        if event.sequence_number != self._sequence + 1 or frame.event != event.type:
            return None
        is_text = event.type == "response.output_text.delta"
        growing = item.parts.get(("text", event.content_index) if is_text else ("call", 0))
        if growing is None or isinstance(growing, OpenCallPart) == is_text:
            return None
        self._sequence += 1
        return self._grow(growing, event.delta, tuple(event.logprobs) if event.logprobs else None)

    def end(self) -> list[Event]:
        where = "in the middle of the answer" if self._is_started else "before any answer came"
        return self.fail(cut(f"the back end's stream ended {where}."))

    def _slow(self, frame: Frame) -> list[Event]:
        value = object_in(frame)
        if value is None:
            if is_mark(frame.data):
                return self.end()
            return self.fail(garbage(f"the back end sent an event that is not a JSON object: {excerpt(frame.data)}"))
        kind = value.get("type")
        if not isinstance(kind, str):
            if not self._is_started and isinstance(value.get("output"), list):
                return self._whole_answer(value)
            kind = frame.event
        if frame.event != kind or value.get("sequence_number") != self._sequence + 1:
            self.irregular = self.irregular or "an event without its name or out of sequence"
        number = value.get("sequence_number")
        self._sequence = number if isinstance(number, int) else self._sequence + 1
        return self._event(kind, value, frame)

    def _whole_answer(self, value: JsonObject) -> list[Event]:
        """A server that does not stream and sends the whole answer in one event."""
        events, _ = body_events(self._request, value)
        self.irregular = self.irregular or "a body in an event"
        self.is_over = True
        return events

    def _event(self, kind: str, value: JsonObject, frame: Frame) -> list[Event]:
        if kind in _OPENINGS:
            return self._start(value, kind)
        if kind in _ENDS:
            return self._finish(kind, value)
        if kind == "error" or (value.get("error") and "output_index" not in value):
            return self.fail(failure(value.get("error") or value, frame.data))
        if kind not in _ABOUT_ITEMS and kind not in _INSIDE and not isinstance(value.get("output_index"), int):
            return self._unknown(kind, value, frame)
        events = self._begin()
        if kind == "response.output_item.added":
            return events + self._add(_place(value), value.get("item"))
        item = self._item_of(value)
        if item is None:
            self.irregular = self.irregular or "an event for an item that was not added"
            given = value.get("item")
            made = given if isinstance(given, dict) else {"type": _ITEM_OF.get(kind, "message")}
            events += self._add(_place(value), {"id": value.get("item_id"), **made})
            item = self._items.all[-1]
        events += self._turn_to(item)
        if item.is_done:
            self.irregular = self.irregular or "an event for an item that is done"
            return events
        if kind == "response.output_item.done":
            return events + self._end_item(item, value.get("item"))
        return events + self._inside(kind, item, value)

    def _unknown(self, kind: str, value: JsonObject, frame: Frame) -> list[Event]:
        if not kind:
            return self.fail(garbage(f"the back end sent {excerpt(frame.data)} where an event was expected."))
        return [Noted(note=Opaque(dialect=NAME, value=value))] if self._is_started else []

    def _item_of(self, value: JsonObject) -> OpenItem | None:
        """Which item an event is about; None: one that no event has added yet."""
        index = _place(value)
        if index is None or value.get("output_index") != index:
            self.irregular = self.irregular or "an event without the index of its item"
        return self._items.find(value, index)

    def _turn_to(self, item: OpenItem) -> list[Event]:
        """The next event is for this item: end the texts and complete calls of the item before it."""
        last, self._items.current = self._items.current, item
        if last is None or last is item or last.is_done:
            return []
        events: list[Event] = []
        for growing in last.parts.values():
            if isinstance(growing.part, Text | Refusal) or growing.value is not None:
                events += self._assembly.end(growing)
                last.is_left = True
        return events

    def _start(self, value: JsonObject, kind: str) -> list[Event]:
        if self._is_started:
            if kind == "response.created":
                self.irregular = self.irregular or "a second start"
            return []
        self._is_started = True
        response = value.get("response")
        response = response if isinstance(response, dict) else {}
        if not response.get("id"):
            self.irregular = self.irregular or "an answer without an id"
        return [started(response)]

    def _begin(self) -> list[Event]:
        if self._is_started:
            return []
        self.irregular = self.irregular or "no response.created"
        return self._start({}, "")

    def _add(self, index: int | None, value: Any) -> list[Event]:
        if not isinstance(value, dict):
            self.irregular = self.irregular or "an item that is no object"
            return []
        item_id = given_id = text_in(value, "id")
        known = self._items.named(item_id)
        if known is not None and known.is_repeated_by(value):
            self.irregular = self.irregular or "an item that was added already"
            return []
        items = self._items.all
        if items and not items[-1].is_done:
            self.irregular = self.irregular or "an item before the last one was done"
        if index != len(items) or not item_id or known is not None:
            self.irregular = self.irregular or "an item out of order or without an id of its own"
            item_id = "" if known is not None else item_id
            value = {**value, "id": item_id}
        item = OpenItem(value, item_id)
        self._items.add(item, index, given_id)
        return self._turn_to(item) + self._open_item(item, value)

    def _open_item(self, item: OpenItem, value: JsonObject) -> list[Event]:
        match value.get("type"):
            case "message" | "reasoning":
                is_list = isinstance(value.get("content" if value["type"] == "message" else "summary"), list)
                self.irregular = self.irregular or ("" if is_list else "an item without its list")
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

    def _open(self, item: OpenItem, key: tuple[str, int], part: Part) -> list[Event]:
        growing, started = self._assembly.start(part)
        item.parts[key] = growing
        item.counts[key[0]] = item.counts.get(key[0], 0) + 1
        return [started]

    def _grow(self, growing: OpenPart, text: str, logprobs: tuple[Any, ...] | None = None) -> list[Event]:
        if not self._assembly.is_open(growing):
            if text.strip() or not isinstance(growing, OpenCallPart):
                self.irregular = self.irregular or "a delta for a part that is done"
            return []
        if not text:
            return []
        events: list[Event] = [growing.grow(text, logprobs)]
        if growing.index + 1 != self._assembly.count and growing.value is not None:  # others wait for it
            events += self._assembly.end(growing)
        return events

    def _inside(self, kind: str, item: OpenItem, value: JsonObject) -> list[Event]:
        if not item.id or value.get("item_id") != item.id:
            self.irregular = self.irregular or "an event without the id of its item"
        known = _INSIDE.get(kind)
        if known is None:
            growing = item.parts.get(("opaque", 0))
            index = growing.index if growing is not None else None
            return [Noted(note=Opaque(dialect=NAME, value=value), index=index)]
        action, slot, member = known
        place = value.get("summary_index" if slot == "summary" else "content_index")
        if slot != "call" and not isinstance(place, int):
            self.irregular = self.irregular or "a part without its index"
        if slot == "call" and kind.startswith("response.custom") != (item.value.get("type") == "custom_tool_call"):
            self.irregular = self.irregular or "an event for another kind of call"
        key = (slot, item.place(slot, action, place) if slot != "call" else 0)
        events: list[Event] = []
        growing = item.parts.get(key)
        if growing is not None and action == "open":
            self.irregular = self.irregular or "a part twice"
        if growing is None:
            if action != "open":
                self.irregular = self.irregular or "a delta before its part"
            if slot == "call" and action == "delta":
                item.held.append(text_in(value, member))
            if slot == "call" or action == "close":
                return []
            events += self._open_slot(item, key, value)
            growing = item.parts[key]
        if action == "delta" and item.is_left and isinstance(growing.part, Text | Refusal):
            self.irregular = self.irregular or "a text that another item has interrupted"
            if not self._assembly.is_open(growing):
                events += self._open(item, key, type(growing.part)(text=""))
                growing = item.parts[key]
        if action == "delta":
            logprobs = value.get("logprobs")
            found = tuple(logprobs) if isinstance(logprobs, list) and logprobs else None
            return events + self._grow(growing, text_in(value, member), found)
        if action == "whole":
            return events + self._fill(growing, text_in(value, member))
        if action == "cite" and (citation := citation_in(value.get("annotation"))):
            growing.citations.append(citation)
            events.append(Noted(note=citation, index=growing.index))
        elif action == "close":
            events += self._close(item, growing)
        return events

    def _open_slot(self, item: OpenItem, key: tuple[str, int], value: JsonObject) -> list[Event]:
        """content_part.added has the kind of a part, or the delta that came without one."""
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
        extra = phase_in(item.value)
        if extra and self._request.origin != NAME and not self._has_lost_phase:
            self._has_lost_phase = True
            events.append(LOST_PHASE)
        return events + self._open(item, key, Text(text="", item_id=item.id, extra=extra))

    def _fill(self, growing: OpenPart, text: str, logprobs: tuple[Any, ...] | None = None) -> list[Event]:
        """A full copy after the pieces only fills what is missing (H015)."""
        part = growing.part
        if isinstance(part, ToolCall) and part.kind == "function" and not (growing.content + text).strip():
            self.irregular = self.irregular or "a call without arguments"
        content = growing.content
        if len(text) <= len(content) or not text.startswith(content) or not self._assembly.is_open(growing):
            return []
        self.irregular = self.irregular or "a text without its deltas"
        return self._grow(growing, text[len(content) :], logprobs if not content else None)

    def _close(self, item: OpenItem, growing: OpenPart) -> list[Event]:
        if growing is item.last:
            return []
        return self._assembly.end(growing)

    def _end_item(self, item: OpenItem, value: Any) -> list[Event]:
        self._items.end(item)
        if not isinstance(value, dict) or any(text_in(value, key) != text_in(item.value, key) for key in _NAMING):
            self.irregular = self.irregular or "an item that ends by another name"
        value = value if isinstance(value, dict) else item.value
        if item.value.get("type") in CALLS:  # what only its start or only its end contained
            value = {**value, **{key: text_in(item.value, key) or text_in(value, key) for key in _NAMING}}
        if not item.id and (self._items.named(text_in(value, "id")) or item) is not item:
            value = {**value, "id": ""}
        item.value = value
        whole = parts_in(value)
        if not item.parts:
            return self._unstreamed(item, whole)
        events: list[Event] = []
        encrypted = next((part.encrypted for part in whole if isinstance(part, Reasoning) and part.encrypted), None)
        for growing in dict.fromkeys(item.parts.values()):
            part = same_part(whole, growing.part)
            events += self._complete(growing, part, encrypted if growing is item.last else None)
        for part in whole:
            if getattr(part, "text", ""):
                events += self._whole(part)
        return events

    def _unstreamed(self, item: OpenItem, whole: list[Part]) -> list[Event]:
        """An item of which only the end has come."""
        events: list[Event] = []
        for part in whole:
            if isinstance(part, ToolCall) and not part.name:
                return events + self.fail(garbage(NAMELESS))
            if isinstance(part, ToolCall) and item.held and part.raw == "{}":
                part = msgspec.structs.replace(part, raw="".join(item.held))
            events += self._whole(part)
        return events

    def _whole(self, part: Part) -> list[Event]:
        if not isinstance(part, Reasoning) or part.text:
            self.irregular = self.irregular or "an item that was not streamed"
        growing, started = self._assembly.start(emptied(part))
        return [started, *self._complete(growing, part, part.encrypted if isinstance(part, Reasoning) else None)]

    def _complete(self, growing: OpenPart, whole: Part | None, encrypted: str | None) -> list[Event]:
        """End a part with the members that only the finished item has."""
        match growing.part, whole:
            case ToolCall(), ToolCall(raw=raw):
                events = self._fill(growing, raw)
                if growing.content and growing.content != raw:
                    self.irregular = self.irregular or "arguments that end as others"
                return events + self._assembly.end(growing, is_cut=not raw)
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
        status = kind.removeprefix("response.")
        if response.get("status") != status:
            self.irregular = self.irregular or "an end with another status"
            status = response["status"] if response.get("status") in _UNHAPPY else status
        events = self._begin()
        if status in ("failed", "cancelled") or response.get("error"):
            return events + self.fail(failure(response.get("error"), encode(response)))
        events += self._missing_items(response.get("output"))
        if any(item.is_nameless for item in self._items.all):
            events += self.fail(garbage(NAMELESS))
        elif status == "completed" and any(item.is_cut for item in self._items.all):
            events += self.fail(cut("the back end ended its answer in the middle of a call."))
        if self.is_over:
            return events
        if self._assembly.open:
            self.irregular = self.irregular or "an item that was never done"
            events += self._assembly.end_all(is_cut=status == "incomplete")
        self.is_over = True
        usage = response.get("usage")
        if not isinstance(usage, dict) or not is_counted(usage):
            self.irregular = self.irregular or "no usage, or one that is no count"
        raw, reason = reason_of(response, status, self._has_calls)
        if status == "incomplete" and raw not in _INCOMPLETE:
            self.irregular = self.irregular or "an end for no known reason"
        counted = usage_in(usage) if isinstance(usage, dict) else None
        finished = Finished(
            choices=(Choice(reason=reason, raw_reason=raw),), usage=counted, extra={NAME: members(response)}
        )
        return [*events, finished]

    def _missing_items(self, output: Any) -> list[Event]:
        """Items whose end, or all of them, only the final object shows."""
        given = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
        items = self._items.all
        if output != [item.value for item in items if item.is_done]:
            self.irregular = self.irregular or "an end that shows other items than were streamed"
        events: list[Event] = []
        for value, item in matched(given, items):
            if self.is_over or (item is not None and item.is_done):
                continue
            if item is None:
                is_taken = self._items.named(text_in(value, "id")) is not None
                events += self._add(len(items), {**value, "id": ""} if is_taken else value)
                item = items[-1]
            events += self._end_item(item, value)
        return events


_ITEM_OF = {
    kind: {"call": "function_call", "summary": "reasoning", "thought": "reasoning"}[slot]
    for kind, (_, slot, _) in _INSIDE.items()
    if slot in ("call", "summary", "thought")
} | {
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.custom_tool_call_input.done": "custom_tool_call",
}


def _place(value: JsonObject) -> int | None:
    index: Any = value.get("output_index")
    return index if isinstance(index, int) else None
