"""Ollama: canonical events out, as lines of JSON or as one object.

Text and thinking are sent as they come. A call is sent whole, because its arguments are an object here. The last line has the reason, the
token counts and the durations. An answer that fails ends with a line that has only the error.
"""

from __future__ import annotations

from typing import assert_never

from msgspec.structs import replace

from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded, PartStarted, Started
from ...types import Choice, Json, JsonObject, Part, Reasoning, Refusal, Request, Text, ToolCall, Usage
from ...wire.exact_json import encode
from ...wire.sse import Frame
from ..base import AnswerContext
from ..shared.answer_out import Seams, join_texts
from ..shared.calls import arguments_of
from .request_in import is_generate
from .shapes import date_of

_NANOSECONDS = 1_000_000_000


class OllamaStreamEncoder:
    """Each event is at most one line; a line ends with one line feed."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._form = _Form(context)
        self._parts: dict[int, Part] = {}  # open texts, as they started
        self._seams = Seams()
        self._late: set[int] = set()  # parts whose first delta may need a separator
        self._calls = 0
        self._first = 0.0  # when the first output arrived

    def send(self, event: Event) -> bytes:
        match event:
            case PartDelta():
                return self._delta(event)
            case Started() | Noted():
                return b""
            case PartStarted():
                self._open(event)
                return b""
            case PartEnded():
                return self._end(event)
            case Finished():
                ended = _ending(event, self._context, self._first)
                return self._form.line(self._form.output(""), ended)
            case Failed():
                return encode({"error": event.error.sentence()}) + b"\n"
            case _:
                assert_never(event)

    def observe(self, event: Event) -> None:
        """No back end sends this dialect, so that nothing is ever forwarded unchanged."""

    def passed(self, frame: Frame) -> None:
        pass

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        return b""

    def final(self) -> None:
        """This dialect has no memory."""

    def _open(self, event: PartStarted) -> None:
        self._first = self._first or self._context.clock()
        if isinstance(event.part, Text | Refusal | Reasoning):
            self._parts[event.index] = event.part
            if self._seams.begin(replace(event, part=_as_text(event.part))):
                self._late.add(event.index)

    def _delta(self, event: PartDelta) -> bytes:
        part = self._parts.get(event.index)
        if part is None:
            return b""
        text = event.text
        if event.index in self._late:
            self._late.discard(event.index)
            text = self._seams.before(event) + text
        if isinstance(part, Reasoning):
            return self._form.line(self._form.output("", thinking=text))
        logprobs = {"logprobs": list(event.logprobs)} if event.logprobs else {}
        return self._form.line(self._form.output(text), logprobs)

    def _end(self, event: PartEnded) -> bytes:
        self._parts.pop(event.index, None)
        self._late.discard(event.index)
        self._seams.end(replace(event, part=_as_text(event.part)))
        if not isinstance(event.part, ToolCall):
            return b""
        call = call_out(event.part, self._calls)
        self._calls += 1
        return self._form.line(self._form.output("", calls=[call]))


class _Form:
    """The two forms of an answer: a message in /api/chat, members of the object itself in /api/generate."""

    def __init__(self, context: AnswerContext) -> None:
        self._is_generate = is_generate(context.request)
        self._head: JsonObject = {"model": context.request.model, "created_at": date_of(context.now)}

    def output(self, text: str, *, thinking: str = "", calls: list[JsonObject] | None = None) -> JsonObject:
        more: JsonObject = {}
        if thinking:
            more["thinking"] = thinking
        if calls:
            more["tool_calls"] = calls
        if self._is_generate:
            return {"response": text, **more}
        return {"message": {"role": "assistant", "content": text, **more}}

    def line(self, output: JsonObject, more: JsonObject | None = None) -> bytes:
        return encode(self.whole(output, {"done": False, **(more or {})})) + b"\n"

    def whole(self, output: JsonObject, more: JsonObject) -> JsonObject:
        return {**self._head, **output, **more}


def body_of(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    """Of several choices the first: a request has no member to ask for more."""
    parts = answer.parts_of(0)
    texts = [part for part in parts if isinstance(part, Text | Refusal)]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    form = _Form(context)
    output = form.output(
        join_texts(texts),
        thinking=join_texts(part for part in parts if isinstance(part, Reasoning)),
        calls=[call_out(call, index) for index, call in enumerate(calls)],
    )
    ended = _ending(answer.finished, context, 0.0)
    logprobs = [entry for text in texts if isinstance(text, Text) for entry in text.logprobs or ()]
    return form.whole(output, ended | ({"logprobs": logprobs} if logprobs else {}))


def load_answer(request: Request, now: int) -> bytes:
    """The answer to a request without messages. A model is loaded by its back end; with keep_alive 0 it may be unloaded."""
    is_unload = request.source.get("keep_alive") in (0, "0", "0s")
    form = _Form(AnswerContext(request=request, mint=str, now=now))
    return encode(form.whole(form.output(""), {"done": True, "done_reason": "unload" if is_unload else "load"}))


def _as_text(part: Part) -> Part:
    """A refusal is text here, so that it needs a separator after other text."""
    return Text(text=part.text, is_continuation=part.is_continuation) if isinstance(part, Refusal) else part


def call_out(call: ToolCall, index: int) -> JsonObject:
    return {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments_of(call)}}


def _ending(finished: Finished, context: AnswerContext, first: float) -> JsonObject:
    """Without durations that are 0, as the API writes it. first: when the first output arrived, 0.0 if the answer is sent whole."""
    usage = finished.usage or Usage()
    ended = context.clock()
    began = first or ended
    durations: dict[str, Json] = {
        "total_duration": _nanoseconds(ended - context.started),
        "prompt_eval_count": usage.input,
        "prompt_eval_duration": _nanoseconds(began - context.started) if first else 0,
        "eval_count": usage.output,
        "eval_duration": _nanoseconds(ended - began),
    }
    counted = {name: value for name, value in durations.items() if value or name.endswith("count")}
    return {"done": True, "done_reason": _reason(finished.choices), **counted}


def _reason(choices: tuple[Choice, ...]) -> str:
    """An answer with calls ends by "stop" as well."""
    return "length" if choices and choices[0].reason == "length" else "stop"


def _nanoseconds(seconds: float) -> int:
    return max(0, int(seconds * _NANOSECONDS))
