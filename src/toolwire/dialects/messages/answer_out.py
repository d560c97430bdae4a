"""Anthropic Messages: canonical events out, as stream events or as one message.

Only one block is open at a time. If a back end interleaves parts, a later part waits until the open one ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec import DecodeError

from ...events import Event, Failed, Finished, FoldedAnswer, Folder, Noted, PartDelta, PartEnded, PartStarted, Started
from ...types import (
    Choice,
    Citation,
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
from ..shared.calls import arguments_of
from ..shared.requests import fit_id
from ..shared.sealed_reasoning import seal
from .errors import error_object
from .shapes import MAX_ID, NAME, read_delta

STOP: dict[Reason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "paused": "pause_turn",
    "refused": "refusal",
    "other": "end_turn",
}
_SUMMARY = ("content", "encrypted_content")
_STOPPED = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
_DELTA: dict[type, bytes] = {
    Text: b'"type":"text_delta","text":',
    Refusal: b'"type":"text_delta","text":',
    Reasoning: b'"type":"thinking_delta","thinking":',
    ToolCall: b'"type":"input_json_delta","partial_json":',
}


class MessagesStreamEncoder:
    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._is_started = False
        self._count = 0
        self._current: int | None = None  # the part whose block is open
        self._wrap: tuple[bytes, bytes] | None = None  # around the text of a delta of the current part
        self._waiting: dict[int, list[Event]] = {}  # parts that began while another block was open
        self._unopened: dict[int, PartStarted] = {}  # reasoning without text: its block opens with the first delta
        self._has_refusal = False
        self._encode_text: Callable[[str], bytes] = encode_or_raise  # for a delta of the current part
        self._is_ending = False  # the back end's own message_delta was forwarded
        self._is_summary_due = False  # the open block is a compaction without its content
        self._signature = ""  # the part of the open block's signature that was forwarded
        self._envelope: JsonObject = {}
        self._folder = Folder() if context.is_kept else None

    def send(self, event: Event) -> bytes:
        if self._folder is not None and type(event) is not PartDelta:
            self._folder.send(event)
        match event:
            case PartDelta():
                if event.index == self._current and self._wrap is not None:
                    try:
                        return self._wrap[0] + self._encode_text(event.text) + self._wrap[1]
                    except UnicodeEncodeError:
                        return self._wrap[0] + encode(event.text) + self._wrap[1]
                return self._delta(event)
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
                return frame_of({"type": "error", "error": error_object(event.error)})
            case _:
                assert_never(event)

    def observe(self, event: Event) -> None:
        """The back end's own events were forwarded; store only what later events need."""
        match event:
            case PartStarted():
                self._open_block(event.index, event.part)
            case Started() | PartEnded():
                self.send(event)
            case _:
                pass

    def passed(self, frame: Frame) -> None:
        self._is_ending = self._is_ending or frame.event == "message_delta"
        if frame.event == "content_block_stop":  # the end of a call without arguments is known only later
            self._current = self._wrap = None
        if b'"signature_delta"' in frame.data:
            self._signature += _signature_in(frame.data)

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        return b""

    def final(self) -> JsonObject | None:
        if self._folder is None:
            return self._envelope
        if not self._folder.is_done or self._folder.error is not None:
            return None
        return body_of(self._folder.answer(), self._context) | {"id": self._envelope["id"]}

    def _start(self, event: Started) -> bytes:
        self._is_started = True
        message = self._envelope = envelope_of(event, self._context)
        usage = event.usage or Usage(input=max(1, len(self._context.request.wire) // 4))  # H144: never zero
        message["usage"] = {**usage_out(usage), "output_tokens": usage.output}
        return frame_of({"type": "message_start", "message": message})

    def _open(self, event: PartStarted) -> bytes:
        if self._current is not None and self._current != event.index:
            self._waiting[event.index] = [event]
            return b""
        part = event.part
        if isinstance(part, Reasoning) and part.redacted is None:
            self._unopened[event.index] = event
            self._current = event.index
            self._wrap = None
            return b""
        return self._open_block(event.index, part)

    def _open_block(self, index: int, part: Part) -> bytes:
        block = block_start(part)
        self._current, self._wrap = index, None
        if block is None:
            return b""
        number = self._count
        self._count += 1
        self._is_summary_due = block.get("type") == "compaction"
        kind = _DELTA.get(type(part))
        opening = frame_of({"type": "content_block_start", "index": number, "content_block": block})
        if kind is not None:
            head = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{' % number
            self._wrap = (head + kind, b"}}\n\n")
        self._has_refusal = self._has_refusal or isinstance(part, Refusal)
        is_custom = isinstance(part, ToolCall) and part.kind == "custom"
        self._encode_text = _encode_inside_string if is_custom else encode_or_raise
        if is_custom and self._wrap is not None:
            opening += self._wrap[0] + encode('{"input":"') + self._wrap[1]
        return opening

    def _delta(self, event: PartDelta) -> bytes:
        if event.index in self._waiting:
            self._waiting[event.index].append(event)
            return b""
        started = self._unopened.pop(event.index, None)
        if started is None:
            return b""
        return self._open_block(event.index, started.part) + self.send(event)

    def _end(self, event: PartEnded) -> bytes:
        if event.index in self._waiting:
            self._waiting[event.index].append(event)
            return b""
        if event.index != self._current:
            return b""
        part, output = event.part, b""
        if self._unopened.pop(event.index, None) is not None:
            if isinstance(part, Reasoning) and signature_of(part):
                output += self._open_block(event.index, part)
            else:
                self._current = None
                return self._resume()
        number = self._count - 1
        if isinstance(part, Reasoning) and (signature := signature_of(part)) and part.redacted is None:
            if rest := signature.removeprefix(self._signature):  # a part of it twice would break it (H081)
                delta = {"type": "signature_delta", "signature": rest}
                output += frame_of({"type": "content_block_delta", "index": number, "delta": delta})
            self._signature = ""
        if self._encode_text is _encode_inside_string and self._wrap is not None:
            output += self._wrap[0] + encode('"}') + self._wrap[1]
        if isinstance(part, Opaque) and part.value.get("content") and self._is_summary_due:
            summary: JsonObject = {"type": "compaction_delta", **{key: part.value.get(key) for key in _SUMMARY}}
            output += frame_of({"type": "content_block_delta", "index": number, "delta": summary})
        if block_start(part) is not None:
            output += frame_of({"type": "content_block_stop", "index": number})
        self._current, self._wrap, self._encode_text = None, None, encode_or_raise
        return output + self._resume()

    def _resume(self) -> bytes:
        """The open block has ended: send what waited, up to the next part that is still open."""
        output = b""
        while self._waiting and self._current is None:
            events = self._waiting.pop(next(iter(self._waiting)))
            output += b"".join(self.send(event) for event in events)
        return output

    def _note(self, event: Noted) -> bytes:
        if event.index in self._waiting:
            self._waiting[event.index].append(event)
            return b""
        match event.note:
            case Citation():
                value = citation_out(event.note)
                return b"" if value is None else self._aside(event, {"type": "citations_delta", "citation": value})
            case Opaque(dialect="messages", value=value):
                if event.index is None:
                    return frame_of(value) if isinstance(value.get("type"), str) else b""
                return self._aside(event, value)
            case _:
                return b""

    def _aside(self, event: Noted, delta: JsonObject) -> bytes:
        """A delta that is no text, for the open block; elsewhere it is dropped."""
        if event.index is None or event.index != self._current:
            return b""
        started = self._unopened.pop(event.index, None)
        opening = self._open_block(event.index, started.part) if started is not None else b""
        self._is_summary_due = False
        return opening + frame_of({"type": "content_block_delta", "index": self._count - 1, "delta": delta})

    def _finish(self, event: Finished) -> bytes:
        if self._is_ending:
            return _STOPPED
        opening = b"" if self._is_started else self._start(Started(id="", model=""))
        choice = event.choices[0]
        delta = {
            "stop_reason": stop_of(choice, self._has_refusal),
            "stop_sequence": choice.stop_sequence,
            **choice.extra.get(NAME, {}),
        }
        usage = usage_out(event.usage or Usage())
        closing = frame_of({"type": "message_delta", "delta": delta, "usage": usage})
        return opening + closing + _STOPPED


def body_of(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    parts = answer.parts_of(0)
    choice = answer.finished.choices[0]
    body = envelope_of(answer.started, context)
    body["content"] = [block for part in parts if (block := block_out(part)) is not None]
    body["stop_reason"] = stop_of(choice, any(isinstance(part, Refusal) for part in parts))
    body["stop_sequence"] = choice.stop_sequence
    body["usage"] = usage_out(answer.finished.usage or Usage())
    return body


def frame_of(value: JsonObject) -> bytes:
    return frame_bytes(value["type"], encode(value))


def _encode_inside_string(text: str) -> bytes:
    """The input of a custom tool is a string inside the JSON of its arguments, so its text is escaped twice."""
    return encode(encode(text)[1:-1].decode())


def _signature_in(data: bytes) -> str:
    try:
        return read_delta(data).delta.signature or ""
    except (DecodeError, UnicodeError):
        return ""


def envelope_of(started: Started, context: AnswerContext) -> JsonObject:
    is_own = NAME in started.extra
    return {
        "id": context.answer_id or (is_own and started.id) or context.mint("msg_"),
        "type": "message",
        "role": "assistant",
        "model": (is_own and not context.is_renamed and started.model) or context.request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **started.extra.get(NAME, {}),
    }


def block_start(part: Part) -> JsonObject | None:
    """A block as in content_block_start: empty, with its ids; None if this dialect has no block for the part."""
    match part:
        case Text() | Refusal():
            return {"type": "text", "text": ""}
        case Reasoning(redacted=str(data)):
            return {"type": "redacted_thinking", "data": data}
        case Reasoning():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall():
            own = part.extra.get(NAME, {})
            return {"type": "tool_use", "id": fit_id(part.id, MAX_ID), "name": part.name, "input": {}, **own}
        case Opaque(dialect="messages", value={"type": "compaction"}):
            return {"type": "compaction", "content": None}  # its content is a delta
        case Opaque():
            return part.value if part.dialect == NAME else None
        case Media() | ToolResult():
            return None
        case _:
            assert_never(part)


def signature_of(part: Reasoning) -> str:
    """Its own signature, or a seal for reasoning of another dialect: some clients show reasoning without a signature as text."""
    is_foreign = any(dialect != NAME for dialect in part.extra)
    return part.signature or (seal([part]) if is_foreign and (part.text or part.encrypted) else "")


def block_out(part: Part) -> JsonObject | None:
    """A whole block of an answer."""
    block = block_start(part)
    match part:
        case Text(text="") | Refusal(text=""):
            return None
        case Text():
            cited = [value for citation in part.citations if (value := citation_out(citation)) is not None]
            return {"type": "text", "text": part.text, **({"citations": cited} if cited else {})}
        case Refusal():
            return {"type": "text", "text": part.text}
        case Reasoning(redacted=None):
            if not part.text and not signature_of(part):
                return None
            return {"type": "thinking", "thinking": part.text, "signature": signature_of(part)}
        case ToolCall() if block is not None:
            return {**block, "input": arguments_of(part)}
        case Opaque() if part.dialect == NAME:
            return part.value
        case _:
            return block


def stop_of(choice: Choice, has_refusal: bool) -> str:
    if has_refusal and choice.reason == "stop":
        return "refusal"
    if choice.reason == "stop" and choice.stop_sequence is not None:
        return "stop_sequence"
    if choice.raw_reason in ("model_context_window_exceeded", "compaction"):
        return choice.raw_reason
    return STOP[choice.reason]


def usage_out(usage: Usage) -> JsonObject:
    """Input without cached tokens, as this dialect counts; counters of its own stay as they came."""
    counted = {
        "input_tokens": max(0, usage.input - usage.cached - usage.cache_written),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
    if usage.reasoning:
        counted["output_tokens_details"] = {"thinking_tokens": usage.reasoning}  # type: ignore[assignment] # one nested
    return {**usage.extra.get(NAME, {}), **counted}


def citation_out(citation: Citation) -> JsonObject | None:
    """Only a web source can be expressed without the document that it refers to."""
    own = citation.extra.get(NAME)
    if own is not None or not citation.url:
        return own
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.quote,
        "encrypted_index": "",
    }
