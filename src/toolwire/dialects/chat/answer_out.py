"""Chat Completions: canonical events out, as chunks or as one body."""

from __future__ import annotations

from typing import assert_never

from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded, PartStarted, Started
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
from ...wire.sse import Frame
from ..base import AnswerContext
from ..shared.answer_out import Seams, join_texts
from ..shared.errors import error_object
from .reasoning_details import MEMBER, details_of
from .shapes import NAME, read_by_hand

FINISH: dict[Reason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "refused": "content_filter",
    "paused": "stop",
    "other": "stop",
}
DONE = b"data: [DONE]\n\n"


class ChatStreamEncoder:
    """One chunk per event. The envelope of a delta is encoded once per part."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._head = b""
        self._tail = b"}\n\n"
        self._roles: set[int] = set()
        self._calls: dict[int, int] = {}
        self._around: dict[int, tuple[bytes, bytes]] = {}
        self._choice_of: dict[int, int] = {}
        self._ended: set[int] = set()  # choices whose finish reason was forwarded
        self._has_usage = False
        self._streamed_details: set[int] = set()  # parts whose details were sent in pieces
        self._seams = Seams()
        self._late: dict[int, tuple[bytes, bytes]] = {}  # as _around, for parts that may begin with a seam

    def send(self, event: Event) -> bytes:
        match event:
            case PartDelta():
                head, tail = self._around.get(event.index) or (b"", b"")
                if not head:
                    return self._first_words(event)
                if event.logprobs is not None:
                    return self._with_logprobs(event)
                try:
                    return head + encode_or_raise(event.text) + tail
                except UnicodeEncodeError:
                    return head + encode(event.text) + tail
            case Started():
                self._start(event)
                return b""
            case PartStarted():
                return self._open(event)
            case PartEnded():
                self._end(event)
                return self._prove(event) if type(event.part) is Reasoning else b""
            case Noted():
                return self._note(event)
            case Finished():
                return self._finish(event)
            case Failed():
                return b"data: " + encode({"error": error_object(event.error)}) + b"\n\n"
            case _:
                assert_never(event)

    def observe(self, event: Event) -> None:
        """The back end's chunks were forwarded: from here on the role is sent and calls are numbered as it numbered them."""
        match event:
            case Started():
                self._start(event)
                self._roles.add(0)
            case PartStarted():
                self._open(event)
                if event.index in self._late:
                    self._around[event.index] = self._late.pop(event.index)
            case PartEnded():
                self._end(event)
            case Noted(index=int(index)):
                self._streamed_details.add(index)
            case _:
                pass

    def passed(self, frame: Frame) -> None:
        if b'"finish_reason":"' in frame.data or b'"finish_reason": "' in frame.data:
            chunk = read_by_hand(frame.data).chunk
            self._ended |= {choice.index for choice in chunk.choices if choice.finish_reason}
            self._has_usage = self._has_usage or chunk.usage is not None
        elif (
            b'"choices":[]' in frame.data or b'"choices": []' in frame.data
        ):  # usage, or the result of a content filter
            self._has_usage = self._has_usage or read_by_hand(frame.data).chunk.usage is not None

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        return b""

    def final(self) -> None:
        """This dialect has no memory."""

    def _start(self, event: Started) -> None:
        envelope = envelope_of(event, self._context, "chat.completion.chunk")
        envelope.pop("choices")
        self._head = b"data: " + encode(envelope)[:-1] + b',"choices":['

    def _open(self, event: PartStarted) -> bytes:
        part, choice = event.part, event.choice
        self._choice_of[event.index] = choice
        delta: JsonObject = {} if choice in self._roles else {"role": "assistant", "content": ""}
        match part:
            case Text():
                self._wrap(event.index, b'"content":', b"")
            case Reasoning():
                if part.redacted is None:
                    self._wrap(event.index, b'"reasoning_content":', b"")
            case Refusal():
                self._wrap(event.index, b'"refusal":', b"")
            case ToolCall():
                number = self._calls[choice] = self._calls.get(choice, -1) + 1
                if "role" in delta:
                    delta["content"] = None
                delta["tool_calls"] = [{"index": number, **call_out(part), **part.extra.get(NAME, {})}]
                inner = b'"custom":{"input":' if part.kind == "custom" else b'"function":{"arguments":'
                self._wrap(event.index, b'"tool_calls":[{"index":%d,%b' % (number, inner), b"}}]")
            case Opaque():
                if part.dialect == NAME:
                    delta |= part.value
            case Media() | ToolResult():
                pass
            case _:
                assert_never(part)
        self._roles.add(choice)
        if self._seams.begin(event) and event.index in self._around:
            self._late[event.index] = self._around.pop(event.index)
        return self._chunk(choice, delta) if delta else b""

    def _end(self, event: PartEnded) -> None:
        self._around.pop(event.index, None)
        self._late.pop(event.index, None)
        self._seams.end(event)

    def _first_words(self, event: PartDelta) -> bytes:
        around = self._late.pop(event.index, None)
        if around is None:
            return b""
        self._around[event.index] = around
        between = self._seams.before(event)
        opening = around[0] + encode(between) + around[1] if between else b""
        return opening + self.send(event)

    def _wrap(self, index: int, opening: bytes, closing: bytes) -> None:
        head = self._head + b'{"index":%d,"delta":{' % self._choice_of[index] + opening
        self._around[index] = (head, closing + b'},"logprobs":null,"finish_reason":null}]}\n\n')

    def _with_logprobs(self, event: PartDelta) -> bytes:
        logprobs = {"content": list(event.logprobs or ()), "refusal": None}
        return self._chunk(self._choice_of[event.index], {"content": event.text}, logprobs=logprobs)

    def _chunk(self, choice: int, delta: JsonObject, **members: object) -> bytes:
        value = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None, **members}
        return self._head + encode(value) + b"]" + self._tail

    def _prove(self, event: PartEnded) -> bytes:
        details = details_of((event.part,))
        return (
            self._chunk(event.choice, {MEMBER: details})
            if details and event.index not in self._streamed_details
            else b""
        )

    def _note(self, event: Noted) -> bytes:
        match event.note:
            case Citation():
                choice = self._choice_of.get(event.index or 0, 0)
                return self._chunk(choice, {"annotations": [citation_out(event.note)]})
            case Opaque(dialect="chat", value=value):
                if event.index is not None:
                    self._streamed_details.add(event.index)
                return self._unknown(value)
            case _:
                return b""

    def _unknown(self, value: JsonObject) -> bytes:
        choices = [
            {"delta": {}, "logprobs": None, "finish_reason": None, **choice} for choice in value.get("choices", ())
        ]
        rest = {key: item for key, item in value.items() if key != "choices"}
        head = self._head[: -len(b',"choices":[')] + (b"," + encode(rest)[1:-1] if rest else b"")
        return head + b',"choices":' + encode(choices) + self._tail if choices else b""

    def _finish(self, event: Finished) -> bytes:
        if not self._head:
            self._start(Started(id="", model=""))
        frames = []
        for choice in event.choices:
            if choice.index in self._ended:
                continue
            role: JsonObject = {} if choice.index in self._roles else {"role": "assistant", "content": ""}
            frames.append(self._chunk(choice.index, role, finish_reason=finish_of(choice)))
        if self._context.request.stream_usage and event.usage is not None and not self._has_usage:
            frames.append(self._head + b'],"usage":' + encode(usage_out(event.usage)) + self._tail)
        return b"".join(frames) + DONE


def body_of(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    body = envelope_of(answer.started, context, "chat.completion")
    for choice in answer.finished.choices:
        body["choices"].append(choice_out(answer.parts_of(choice.index), choice))
    if answer.finished.usage is not None:
        body["usage"] = usage_out(answer.finished.usage)
    return body


def envelope_of(started: Started, context: AnswerContext, kind: str) -> JsonObject:
    is_own = NAME in started.extra
    envelope: JsonObject = {
        "id": (is_own and started.id) or context.mint("chatcmpl-"),
        "object": kind,
        "created": started.created or context.now,
        "model": (is_own and not context.is_renamed and started.model) or context.request.model,
        "choices": [],
    }
    return envelope | started.extra.get(NAME, {})


def choice_out(parts: tuple[Part, ...], choice: Choice) -> JsonObject:
    message: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    texts = [part for part in parts if isinstance(part, Text)]
    if texts:
        message["content"] = join_texts(texts)
        if citations := [citation_out(citation) for part in texts for citation in part.citations]:
            message["annotations"] = citations
    if refusals := [part for part in parts if isinstance(part, Refusal)]:
        message["refusal"] = join_texts(refusals)
    if thoughts := join_texts(part for part in parts if isinstance(part, Reasoning)):
        message["reasoning_content"] = thoughts
    if details := details_of(parts):
        message[MEMBER] = details
    if calls := [call_out(part) | part.extra.get(NAME, {}) for part in parts if isinstance(part, ToolCall)]:
        message["tool_calls"] = calls
    for part in parts:
        if isinstance(part, Opaque) and part.dialect == NAME:
            message |= part.value
    logprobs = [entry for part in texts for entry in part.logprobs or ()]
    return {
        "index": choice.index,
        "message": message,
        "logprobs": {"content": logprobs, "refusal": None} if logprobs else None,
        "finish_reason": finish_of(choice),
    }


def call_out(call: ToolCall) -> JsonObject:
    if call.kind == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.raw}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.raw}}


def finish_of(choice: Choice) -> str:
    return FINISH[choice.reason]


def citation_out(citation: Citation) -> JsonObject:
    own = citation.extra.get(NAME)
    if own is not None:
        return own
    inner = {
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }
    return {"type": "url_citation", "url_citation": inner}


def usage_out(usage: Usage) -> JsonObject:
    """Counters of this dialect that we do not know stay as they came."""
    details = {"cached_tokens": usage.cached, "audio_tokens": 0, "cache_write_tokens": usage.cache_written}
    produced = {
        "reasoning_tokens": usage.reasoning,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    }
    own = {"prompt_tokens_details": details, "completion_tokens_details": produced} | usage.extra.get(NAME, {})
    return own | {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
