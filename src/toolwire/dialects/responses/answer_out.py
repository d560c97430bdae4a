"""OpenAI Responses: canonical events out, as stream events or as one response object.

Parts that follow each other and belong together share an item: texts and refusals a message, summaries a reasoning item. Such an item is
closed when something else begins.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Raw

from ...errors import GatewayError
from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded, PartStarted, Started, unfold
from ...types import (
    Choice,
    Citation,
    Json,
    JsonObject,
    Media,
    Opaque,
    Part,
    Reason,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from ...wire.exact_json import encode, encode_or_raise
from ...wire.sse import Frame, frame_bytes
from ..base import AnswerContext
from ..shared.answer_in import object_in
from .compaction import compacted_body
from .resource import (
    call_item,
    citation_out,
    failed,
    is_plain_thought,
    logprobs_out,
    memory_echo,
    reasoning_item,
    resource,
    text_part,
    usage_out,
)
from .shapes import NAME, phase_of
from .typed_tools import TYPED, shell_commands, typed_item

_COMMAND = "response.shell_call_command"
_INCOMPLETE = ("max_output_tokens", "max_messages", "content_filter", "steered")
_NONE: JsonObject = {}
_ENDS = ("response.completed", "response.incomplete", "response.failed")


class _Item:
    """An output item: its place, its id, and the parts it holds."""

    __slots__ = ("id", "index", "kind", "open", "parts", "shown", "source")

    def __init__(self, kind: str, index: int, item_id: str, source: str) -> None:
        self.kind = kind
        self.index = index
        self.id = item_id
        self.source = source  # the back end's own id for it, if any: parts with another one go elsewhere
        self.parts: list[Part] = []
        self.open = 0
        self.shown = {True: 0, False: 0}  # number of reasoning parts shown so far: raw ones, and summaries


class _Slot:
    """Where one part goes: its item, its place in it, its number for the client, and the bytes around a delta's text."""

    __slots__ = ("after", "before", "item", "number", "place")

    def __init__(self, item: _Item, place: int, before: bytes, after: bytes) -> None:
        self.item = item
        self.place = self.number = place
        self.before = before
        self.after = after


class ResponsesStreamEncoder:
    def __init__(self, context: AnswerContext, *, is_mute: bool = False) -> None:
        self._context = context
        self._is_mute = is_mute  # no events are written, only the final object
        self._sequence = 0
        self._response: JsonObject = {}
        self._slots: dict[int, _Slot] = {}
        self._group: _Item | None = None
        self._items = 0
        self._taken: set[str] = set()  # ids of items
        self._output: dict[int, JsonObject] = {}
        self._annotations: dict[int, int] = {}
        self._unfinished: list[_Item] = []
        self._doubtful: list[tuple[_Item, ToolCall]] = []
        self._final: JsonObject | Frame | None = None  # the frame, where the end left as it came

    def send(self, event: Event) -> bytes:
        match event:
            case PartDelta():
                slot = self._slots.get(event.index)
                if slot is None or not slot.before:
                    return self._first_words(event)
                if event.logprobs is not None and slot.item.kind == "message":
                    return self._with_logprobs(slot, event)
                number = self._sequence
                self._sequence = number + 1
                try:
                    text = encode_or_raise(event.text)
                except UnicodeEncodeError:
                    text = encode(event.text)
                return slot.before + b"%d" % number + slot.after + text + b"}\n\n"
            case Started():
                return self._start(event)
            case PartStarted():
                return self._open(event)
            case PartEnded():
                return self._end(event)
            case Noted():
                return self._note(event)
            case Finished():
                return self._finish(event)
            case Failed():
                return self._fail(event.error)
            case _:
                assert_never(event)

    def observe(self, event: Event) -> None:
        match event:
            case Started() | PartStarted() | PartEnded() | Noted(note=Citation()):
                self.send(event)
            case _:
                pass

    def passed(self, frame: Frame) -> None:
        if frame.event == "response.output_item.done":
            self._end_doubtful("completed")
            if self._group is not None and not self._group.open:
                self._output[self._group.index] = group_item(self._group)
                self._group = None
        elif frame.event == "response.output_item.added":
            self._adopt((object_in(frame) or {}).get("item"))
        elif frame.event in _ENDS:
            self._final = frame

    def _adopt(self, value: Json) -> None:
        """The back end has added an item of which no part is known yet; what comes belongs to it."""
        if isinstance(value, dict) and value.get("type") in ("message", "reasoning"):
            self._close_group()
            item_id = str(value.get("id") or "")
            self._group = _Item(value["type"], self._items, item_id, item_id)
            self._taken.add(item_id)
            self._items += 1

    def resume(self, last: Frame | None) -> None:
        """Continue the numbering of the last frame that was forwarded."""
        if last is not None:
            self._sequence = _number_in(last.data, self._sequence)

    def close(self) -> bytes:
        return b""

    def final(self) -> JsonObject | None:
        if isinstance(self._final, Frame):
            response = (object_in(self._final) or {}).get("response")
            self._final = response if isinstance(response, dict) else None
        return self._final

    def _event(self, kind: str, **members: object) -> bytes:
        if self._is_mute:
            return b""
        value = {"type": kind, "sequence_number": self._sequence, **members}
        self._sequence += 1
        return frame_bytes(kind, encode(value))

    def _start(self, event: Started) -> bytes:
        self._response = resource(self._context, event)
        encoded = Raw(b"" if self._is_mute else encode(self._response))
        return self._event("response.created", response=encoded) + self._event("response.in_progress", response=encoded)

    def _open(self, event: PartStarted) -> bytes:
        part, before = event.part, self._end_doubtful("completed")
        match part:
            case Text() | Refusal():
                return before + self._open_text(event.index, part)
            case Reasoning():
                return before + self._open_thought(event.index, part)
            case ToolCall():
                return before + self._open_call(event.index, part)
            case Opaque():
                return before + self._open_opaque(event.index, part)
            case Media() | ToolResult():
                return b""
            case _:
                assert_never(part)

    def _new_item(self, kind: str, prefix: str, source: str) -> _Item:
        """With the back end's own id, unless an item of this answer has it: one item of the back end may become
        two, with a call between them."""
        item_id = source if source and source not in self._taken else self._context.mint(prefix)
        self._taken.add(item_id)
        item = _Item(kind, self._items, item_id, source)
        self._items += 1
        return item

    def _added(self, item: _Item, value: JsonObject) -> bytes:
        return self._event("response.output_item.added", output_index=item.index, item=value)

    def _grouped(self, kind: str, prefix: str, source: str, own: JsonObject = _NONE) -> tuple[_Item, bytes]:
        """The open item of this kind, or a new one; a different open item is closed first."""
        group = self._group
        if group is not None and group.kind == kind and (not source or source == group.source):
            return group, b""
        output = self._close_group()
        item = self._group = self._new_item(kind, prefix, source)
        value: JsonObject = {"type": kind, "id": item.id}
        if kind == "message":
            value |= {"status": "in_progress", "role": "assistant", "content": [], **own}
        else:
            value["summary"] = []
        return item, output + self._added(item, value)

    def _open_text(self, index: int, part: Text | Refusal) -> bytes:
        item, output = self._grouped("message", "msg_", part.item_id, phase_of((part,)))
        place = len(item.parts)
        item.parts.append(part)
        item.open += 1
        self._slots[index] = self._slot(item, place, "output_text" if isinstance(part, Text) else "refusal")
        return output + self._event(
            "response.content_part.added",
            item_id=item.id,
            output_index=item.index,
            content_index=place,
            part=text_part(part),
        )

    def _open_thought(self, index: int, part: Reasoning) -> bytes:
        item, output = self._grouped("reasoning", "rs_", part.item_id)
        self._slots[index] = _Slot(item, len(item.parts), b"", b"")
        item.parts.append(part)
        item.open += 1
        # Reasoning of another dialect may have no text, only a signature (sealed_reasoning).
        return output + self._show_thought(index) if NAME in part.extra else output

    def _show_thought(self, index: int) -> bytes:
        place, item = self._slots[index].place, self._slots[index].item
        is_plain = is_plain_thought(item.parts[place])
        number = item.shown[is_plain]
        item.shown[is_plain] = number + 1
        slot = self._slots[index] = self._slot(item, number, "reasoning_text" if is_plain else "reasoning_summary_text")
        slot.place = place
        if is_plain:
            return self._thought_part("response.content_part.added", item, number, "reasoning_text", "")
        return self._thought_part("response.reasoning_summary_part.added", item, number, "summary_text", "")

    def _first_words(self, event: PartDelta) -> bytes:
        """Reasoning of another dialect is shown from its first text on."""
        slot = self._slots.get(event.index)
        if slot is None or slot.item.kind != "reasoning" or not event.text:
            return b""
        return self._show_thought(event.index) + self.send(event)

    def _thought_part(self, event: str, item: _Item, place: int, kind: str, text: str) -> bytes:
        where = "content_index" if kind == "reasoning_text" else "summary_index"
        part = {"type": kind, "text": text}
        return self._event(event, item_id=item.id, output_index=item.index, part=part, **{where: place})

    def _open_call(self, index: int, call: ToolCall) -> bytes:
        output = self._close_group()
        if call.kind == "typed":  # its item has no form, and so no place, before what the model chose is known
            return output
        is_custom = call.kind == "custom"
        item = self._new_item("call", "ctc_" if is_custom else "fc_", call.item_id)
        self._slots[index] = self._slot(item, 0, "custom_tool_call_input" if is_custom else "function_call_arguments")
        return output + self._added(item, call_item(call, item.id, "in_progress"))

    def _open_opaque(self, index: int, part: Opaque) -> bytes:
        if part.dialect != NAME:
            return b""
        output = self._close_group()
        item = self._new_item("opaque", "item_", str(part.value.get("id") or ""))
        self._slots[index] = _Slot(item, 0, b"", b"")
        return output + self._added(item, part.value)

    def _slot(self, item: _Item, place: int, kind: str) -> _Slot:
        name = f"response.{kind}.delta"
        members: JsonObject = {"item_id": item.id, "output_index": item.index}
        if kind in ("output_text", "refusal", "reasoning_text"):
            members["content_index"] = place
        if kind == "reasoning_summary_text":
            members["summary_index"] = place
        if kind == "output_text":
            members["logprobs"] = []
        before = f'event: {name}\ndata: {{"type":"{name}","sequence_number":'.encode()
        return _Slot(item, place, before, b"," + encode(members)[1:-1] + b',"delta":')

    def _with_logprobs(self, slot: _Slot, event: PartDelta) -> bytes:
        return self._event(
            "response.output_text.delta",
            item_id=slot.item.id,
            output_index=slot.item.index,
            content_index=slot.place,
            delta=event.text,
            logprobs=logprobs_out(event.logprobs),
        )

    def _end(self, event: PartEnded) -> bytes:
        slot, part = self._slots.pop(event.index, None), event.part
        if isinstance(part, ToolCall) and part.kind == "typed":
            return self._typed(part)
        if slot is None:
            return b""
        item = slot.item
        match part:
            case Text() | Refusal():
                return self._end_text(slot, part)
            case Reasoning():
                return self._end_thought(slot, part)
            case ToolCall():
                is_custom = part.kind == "custom"
                kind = "response.custom_tool_call_input.done" if is_custom else "response.function_call_arguments.done"
                content: JsonObject = {"input": part.raw} if is_custom else {"arguments": part.raw, "name": part.name}
                done = self._event(kind, item_id=item.id, output_index=item.index, **content)
                if part.args is None and not is_custom:
                    self._doubtful.append((item, part))
                    return done
                return done + self._done(item, call_item(part, item.id, "completed"))
            case Opaque():
                return self._done(item, part.value)
            case _:
                return b""

    def _typed(self, call: ToolCall) -> bytes:
        output = self._close_group() if self._group is not None and not self._group.open else b""
        item = self._new_item("call", TYPED[call.name].prefix, call.item_id)
        output += self._added(item, typed_item(call, item.id, "in_progress"))
        for number, command in enumerate(shell_commands(call)):
            where: JsonObject = {"output_index": item.index, "command_index": number}
            output += self._event(f"{_COMMAND}.added", **where, command="")
            output += self._event(f"{_COMMAND}.delta", **where, delta=command)
            output += self._event(f"{_COMMAND}.done", **where, command=command)
        return output + self._done(item, typed_item(call, item.id, "completed"))

    def _end_text(self, slot: _Slot, part: Text | Refusal) -> bytes:
        item = slot.item
        item.parts[slot.place] = part
        item.open -= 1
        where: JsonObject = {"item_id": item.id, "output_index": item.index, "content_index": slot.place}
        if isinstance(part, Text):
            logprobs = logprobs_out(part.logprobs)
            output = self._event("response.output_text.done", **where, text=part.text, logprobs=logprobs)
        else:
            output = self._event("response.refusal.done", **where, refusal=part.text)
        return output + self._event("response.content_part.done", **where, part=text_part(part))

    def _end_thought(self, slot: _Slot, part: Reasoning) -> bytes:
        item, place = slot.item, slot.number
        is_plain = is_plain_thought(item.parts[slot.place])
        item.parts[slot.place] = part
        item.open -= 1
        if not slot.before:
            return b""
        where: JsonObject = {"item_id": item.id, "output_index": item.index}
        if is_plain:
            done = self._event("response.reasoning_text.done", **where, content_index=place, text=part.text)
            return done + self._thought_part("response.content_part.done", item, place, "reasoning_text", part.text)
        done = self._event("response.reasoning_summary_text.done", **where, summary_index=place, text=part.text)
        event = "response.reasoning_summary_part.done"
        return done + self._thought_part(event, item, place, "summary_text", part.text)

    def _end_doubtful(self, status: str) -> bytes:
        """Arguments that do not parse are invalid or cut; what follows shows which, and so the status of the item."""
        if not self._doubtful:
            return b""
        doubtful, self._doubtful = self._doubtful, []
        return b"".join([self._done(item, call_item(call, item.id, status)) for item, call in doubtful])

    def _close_group(self) -> bytes:
        """End the open message or reasoning item; one whose part still grows ends with the answer."""
        item, self._group = self._group, None
        if item is None:
            return b""
        if item.open:
            self._unfinished.append(item)
            return b""
        return self._done(item, group_item(item))

    def _done(self, item: _Item, value: JsonObject) -> bytes:
        self._output[item.index] = value
        return self._event("response.output_item.done", output_index=item.index, item=value)

    def _note(self, event: Noted) -> bytes:
        slot = self._slots.get(event.index) if event.index is not None else None
        match event.note:
            case Citation():
                value = citation_out(event.note)
                if value is None or slot is None:
                    return b""
                number = self._annotations.get(event.index or 0, 0)
                self._annotations[event.index or 0] = number + 1
                return self._event(
                    "response.output_text.annotation.added",
                    item_id=slot.item.id,
                    output_index=slot.item.index,
                    content_index=slot.place,
                    annotation_index=number,
                    annotation=value,
                )
            case Opaque(dialect="responses", value=value):
                members = {key: item for key, item in value.items() if key not in ("type", "sequence_number")}
                if slot is not None and "output_index" in members:
                    members["output_index"] = slot.item.index
                return self._event(str(value.get("type") or "response.unknown"), **members)
            case _:
                return b""

    def _finish(self, event: Finished) -> bytes:
        opening = b"" if self._response else self._start(Started(id="", model=""))
        output = opening + self._close_all(event.choices[0].reason)
        final = self._final = self.whole(event)
        return output + self._event(f"response.{final['status']}", response=final)

    def _close_all(self, reason: Reason) -> bytes:
        output = (
            self._end_doubtful("incomplete" if reason in ("length", "refused") else "completed") + self._close_group()
        )
        for item in self._unfinished:
            output += self._done(item, group_item(item))
        self._unfinished.clear()
        return output

    def whole(self, event: Finished) -> JsonObject:
        """The final response object, from what has been sent so far."""
        self._close_all(event.choices[0].reason)
        items = [self._output[index] for index in sorted(self._output)]
        return finished_resource(self._response, event, items, self._context.now) | memory_echo(self._context)

    def _fail(self, error: GatewayError) -> bytes:
        opening = b"" if self._response else self._start(Started(id="", model=""))
        opening += self._end_doubtful("incomplete")
        items = [self._output[index] for index in sorted(self._output)]
        value = self._final = self._response | {"status": "failed", "error": failed(error), "output": items}
        return opening + self._event("response.failed", response=value)


def body_of(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    """One response object: the stream encoder makes it, its last event carries it."""
    if context.request.compaction is not None and context.request.compaction.is_endpoint:
        return compacted_body(answer, context)
    inner = ResponsesStreamEncoder(context, is_mute=True)
    for event in unfold(answer)[:-1]:
        inner.send(event)
    return inner.whole(answer.finished)


def finished_resource(response: JsonObject, event: Finished, items: list[JsonObject], now: int) -> JsonObject:
    choice: Choice = event.choices[0]
    own = event.extra.get(NAME, {})
    value = {**response, **{key: item for key, item in own.items() if item is not None}}
    value["output"] = items
    value["usage"] = usage_out(event.usage or Usage())
    if choice.reason in ("length", "refused"):
        reason = "max_output_tokens" if choice.reason == "length" else "content_filter"
        reason = choice.raw_reason if choice.raw_reason in _INCOMPLETE else reason
        return value | {"status": "incomplete", "incomplete_details": {"reason": reason}, "completed_at": None}
    return value | {
        "status": "completed",
        "completed_at": own.get("completed_at") or max(now, int(value["created_at"])),
    }


def group_item(item: _Item) -> JsonObject:
    if item.kind == "reasoning":
        return reasoning_item(item.id, [part for part in item.parts if isinstance(part, Reasoning)])
    content = [text_part(part) for part in item.parts if isinstance(part, Text | Refusal)]
    head = {"type": "message", "id": item.id, "status": "completed", "role": "assistant", "content": content}
    return head | phase_of(item.parts)


def _number_in(data: bytes, sequence: int) -> int:
    """The sequence number after that of a frame which went out as it came."""
    start = data.find(b'"sequence_number":')
    if start < 0:
        return sequence + 1
    digits = data[start + 18 : start + 30].lstrip()
    count = 0
    while count < len(digits) and digits[count : count + 1].isdigit():
        count += 1
    return int(digits[:count]) + 1 if count else sequence + 1
