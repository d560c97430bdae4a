"""Chat Completions: answers in, streamed or whole, as canonical events.

What upstreams get wrong is put right here by state, never by comparing content: indices are our own, an id decides which call a fragment
belongs to, a finish reason is held until the stream really ends, usage ends nothing. Each such case is noted in `irregular`.
"""

from __future__ import annotations

from typing import Any

from ...errors import UpstreamError
from ...events import Answer, Event, Failed, Finished, Noted, PartDelta, PartEnded, Started, unfold
from ...types import (
    Choice,
    Citation,
    Extra,
    JsonObject,
    Opaque,
    Part,
    Reason,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
    Usage,
)
from ...wire.exact import BadJson, encode, object_of
from ...wire.sse import Frame
from ..assembly import Growing
from ..base import FrameDecoder, cut, garbage, shown
from ..faults import error_from
from .shapes import NAME, Call, Chunk, ChunkChoice, Function, Reading, read_by_hand, read_fast, read_message

REASONS: dict[str, Reason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refused",
}


_NAMELESS = "the back end sent a tool call without a name."


class _Choice:
    """What is open in one choice."""

    __slots__ = ("by_index", "calls", "finish", "reasoning", "refusal", "text")

    def __init__(self) -> None:
        self.text: Growing | None = None
        self.reasoning: Growing | None = None
        self.refusal: Growing | None = None
        self.calls: list[_Open] = []
        self.by_index: dict[int, _Open] = {}
        self.finish: str | None = None


class _Open:
    """One call: it starts once its name is known; until then its arguments wait."""

    __slots__ = ("growing", "id", "is_custom", "name", "size", "waiting")

    def __init__(self, call_id: str, is_custom: bool) -> None:
        self.id = call_id
        self.name = ""
        self.is_custom = is_custom
        self.size = 0
        self.waiting: list[str] = []
        self.growing: Growing | None = None

    @property
    def is_whole(self) -> bool:
        """Whether its arguments are complete; parsing is tried only where they can be."""
        if self.growing is None or self.is_custom or not self.growing.pieces:
            return False
        return self.growing.pieces[-1].rstrip()[-1:] == "}" and object_of(self.growing.content) is not None

    @property
    def is_blank(self) -> bool:
        return self.growing is not None and not self.is_custom and not self.growing.content.strip()

    def is_copied_by(self, function: Function | None) -> bool:
        """A full copy sent after the fragments (H015): known by state, for complete arguments cannot go on.

        A copy is not much shorter than what it copies; that bound keeps the work linear when every fragment repeats its header.
        """
        size = len(function.arguments) if function is not None and function.arguments else 0
        return size * 2 >= self.size > 0 and self.is_whole

    def is_followed_by(self, function: Function | None) -> bool:
        """A header without an id where the arguments are complete begins another call; the same bound keeps it linear."""
        size = len(function.arguments) if function is not None and function.arguments else self.size
        return size * 2 >= self.size > 0 and self.is_whole


class StreamDecoder(FrameDecoder):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self._is_single = request.sampling.choices == 1
        self._choices: dict[int, _Choice] = {}
        self._started: Started | None = None
        self._usage: Usage | None = None

    def frame(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        data = frame.data
        if data == b"[DONE]":
            return self._finish(is_marked=True)
        events: list[Event] = []
        reading: Reading | None = None
        chunk = read_fast(data)
        if chunk is None:
            try:
                reading = read_by_hand(data)
            except BadJson as fault:
                return self.fail(garbage(f"the back end sent a chunk that is not JSON ({fault}): {shown(data)}"))
            if failed := self._fault_in(reading, frame):
                return failed
            chunk = reading.chunk
            self._start(chunk, events, reading)
            if reading.unknown:
                events.append(Noted(note=Opaque(dialect=NAME, value=reading.unknown)))
        elif self._started is None or self._started.id != chunk.id or self._started.created != chunk.created:
            self._start(chunk, events, None)
        if chunk.usage is not None:
            self._usage = usage_in(chunk.usage)
        for choice in chunk.choices:
            self._choice(choice, events)
        if reading is not None and reading.annotations:
            self._cite(reading, events)
        return events

    def end(self) -> list[Event]:
        return self._finish(is_marked=False)

    def _fault_in(self, reading: Reading, frame: Frame) -> list[Event]:
        value = reading.value
        if value.get("error") or frame.event == "error":
            inner = value.get("error")
            code = inner.get("code") if isinstance(inner, dict) else value.get("status")
            status = code if isinstance(code, int) and 400 <= code <= 599 else 502
            return self.fail(error_from(status, value, frame.data, {}))
        if not isinstance(value.get("choices"), list):  # Ollama has put an error's words into a key (H114)
            return self.fail(garbage(f"the back end sent {shown(frame.data)} where a chunk was expected."))
        self.irregular = self.irregular or reading.faults
        return []

    def _start(self, chunk: Chunk, events: list[Event], reading: Reading | None) -> None:
        if self._started is not None:
            if chunk.id != self._started.id or chunk.created != self._started.created:
                self.irregular = self.irregular or "the id or time of the answer changed"
            return
        if not chunk.id:
            self.irregular = self.irregular or "an answer without an id"
        extra: JsonObject = {
            key: value
            for key, value in (
                ("system_fingerprint", chunk.system_fingerprint),
                ("service_tier", chunk.service_tier),
            )
            if value is not None
        }
        if reading is not None:
            extra |= {key: value for key, value in reading.unknown.items() if key != "choices"}
            reading.unknown = {key: value for key, value in reading.unknown.items() if key == "choices"}
        self._started = Started(id=chunk.id, model=chunk.model, created=chunk.created, extra={NAME: extra})
        events.append(self._started)

    def _cite(self, reading: Reading, events: list[Event]) -> None:
        for index, annotation in reading.annotations:
            if citation := citation_in(annotation):
                growing = self._state(index).text
                if growing is not None:
                    growing.citations.append(citation)
                events.append(Noted(note=citation, index=growing.index if growing else None))

    def _state(self, index: int) -> _Choice:
        if self._is_single and index != 0:  # Copilot splits one answer over two choices (H008)
            self.irregular = self.irregular or "a second choice where one was asked for"
            index = 0
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice()
        return state

    def _choice(self, choice: ChunkChoice, events: list[Event]) -> None:
        state = self._choices.get(choice.index) or self._state(choice.index)
        delta = choice.delta
        if thought := delta.reasoning_content or delta.reasoning:
            if state.reasoning is None:
                state.reasoning = self._begin(state, choice.index, Reasoning(text="", extra={NAME: {}}), events)
            state.reasoning.pieces.append(thought)
            events.append(PartDelta(state.reasoning.index, thought))
        if delta.content:
            growing = state.text
            if growing is None:
                growing = state.text = self._begin(state, choice.index, Text(text=""), events)
            logprobs = _logprobs(choice.logprobs, "content")
            if logprobs:
                growing.logprobs += logprobs
            growing.pieces.append(delta.content)
            events.append(PartDelta(growing.index, delta.content, logprobs))
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._call(state, choice.index, call, events)
        if delta.refusal:
            if state.refusal is None:
                state.refusal = self._begin(state, choice.index, Refusal(text=""), events)
            state.refusal.pieces.append(delta.refusal)
            events.append(PartDelta(state.refusal.index, delta.refusal))
        if choice.finish_reason is not None:
            self.is_ending = True
            if state.finish is not None:
                self.irregular = self.irregular or "a second finish reason"
            if choice.finish_reason not in REASONS:
                self.irregular = self.irregular or "an unknown finish reason"
            elif (choice.finish_reason == "stop" and state.calls) or (
                choice.finish_reason == "tool_calls" and not state.calls
            ):
                self.irregular = self.irregular or "a finish reason that hides or promises a call"
            if any(call.is_blank for call in state.calls):  # vLLM says nothing where "{}" is meant (H109)
                self.irregular = self.irregular or "a call without arguments"
            state.finish = choice.finish_reason
        elif state.finish is not None and (delta.content or delta.tool_calls):
            self.irregular = self.irregular or "content after the finish reason"

    def _begin(self, state: _Choice, choice: int, part: Part, events: list[Event]) -> Growing:
        """Start a part; whatever is certainly complete ends first, so that parts do not overlap."""
        for growing in (state.reasoning, state.text, state.refusal):
            if growing is not None:
                events += self._assembly.end(growing)
        state.reasoning = state.text = state.refusal = None
        for call in state.calls:
            if call.growing is not None and self._assembly.is_open(call.growing) and call.is_whole:
                events += self._assembly.end(call.growing)
        growing, started = self._assembly.start(part, 0 if self._is_single else choice)
        events.append(started)
        return growing

    def _call(self, state: _Choice, choice: int, call: Call, events: list[Event]) -> None:
        function = call.function
        name = (function.name if function else None) or ""
        open_call = self._continued(state, call, name)
        if open_call is None:
            if call.index != len(state.calls) or not call.id or not name:
                self.irregular = self.irregular or "a call without index, id or name, or out of order"
            open_call = _Open(call.id or "", call.is_custom)
            state.calls.append(open_call)
        elif call.id or name:
            self.irregular = self.irregular or "a call's id or name again"
            if open_call.is_copied_by(function):
                return
        if call.index is not None:
            state.by_index[call.index] = open_call
        open_call.id = open_call.id or call.id or ""
        open_call.name = open_call.name or name
        if function is not None and function.arguments:
            open_call.waiting.append(function.arguments)
            open_call.size += len(function.arguments)
        if open_call.name:
            self._advance(state, choice, open_call, events)

    def _continued(self, state: _Choice, call: Call, name: str) -> _Open | None:
        """The call this fragment goes on with: known by its id, else by its index, else the last; None: a new one."""
        at_index = state.by_index.get(call.index) if call.index is not None else None
        if call.id:
            for known in state.calls:
                if known.id == call.id and (known is at_index or call.index is None or not name):
                    return known
            return at_index if at_index is not None and not at_index.id else None
        if at_index is not None:
            return None if name and at_index.is_followed_by(call.function) else at_index
        last = state.calls[-1] if state.calls else None
        if name and (last is None or last.name):
            return None
        return last

    def _advance(self, state: _Choice, choice: int, call: _Open, events: list[Event]) -> None:
        if call.growing is None:
            part = ToolCall(id=call.id, name=call.name, raw="", kind="custom" if call.is_custom else "function")
            call.growing = self._begin(state, choice, part, events)
        elif not self._assembly.is_open(call.growing):  # it ended because it was whole: what comes now is a copy (H015)
            self.irregular = self.irregular or "arguments after their end"
            call.waiting.clear()
        for piece in call.waiting:
            call.growing.pieces.append(piece)
            events.append(PartDelta(call.growing.index, piece))
        call.waiting.clear()

    def _finish(self, *, is_marked: bool) -> list[Event]:
        if self._started is None or not self._choices:
            return self.fail(cut("the back end's stream ended before any answer came."))
        if any(state.finish is None for state in self._choices.values()):
            self.irregular = self.irregular or "no finish reason"
            unfinished = not is_marked or any(self._is_broken(state) for state in self._choices.values())
            if unfinished:
                return self.fail(cut("the back end's stream ended in the middle of the answer."))
        if not is_marked:
            self.irregular = self.irregular or "no end mark"
        if any(state.finish == "error" for state in self._choices.values()):
            return self.fail(UpstreamError("the back end ended its answer with an error and said no more."))
        for state in self._choices.values():
            for call in state.calls:
                if not call.name:
                    return self.fail(garbage(_NAMELESS))
        self.is_over = True
        choices = tuple(
            Choice(index=0 if self._is_single else index, reason=reason_of(state.finish), raw_reason=state.finish or "")
            for index, state in sorted(self._choices.items())
        )
        is_cut = any(choice.reason == "length" for choice in choices)
        return [*self._assembly.end_all(is_cut=is_cut), Finished(choices=choices, usage=self._usage)]

    def _is_broken(self, state: _Choice) -> bool:
        return any(call.growing is None or (call.growing.content and not call.is_whole) for call in state.calls)


def reason_of(raw: str | None) -> Reason:
    return REASONS.get(raw, "other") if raw is not None else "stop"


def usage_in(value: JsonObject) -> Usage:
    given = value.get("prompt_tokens_details")
    details = given if isinstance(given, dict) else {}
    given = value.get("completion_tokens_details")
    produced = given if isinstance(given, dict) else {}
    return Usage(
        input=_count(value.get("prompt_tokens")),
        output=_count(value.get("completion_tokens")),
        cached=_count(details.get("cached_tokens")),
        cache_written=_count(details.get("cache_write_tokens")),
        reasoning=_count(produced.get("reasoning_tokens")),
        extra={NAME: value},
    )


def citation_in(value: Any) -> Citation | None:
    if not isinstance(value, dict) or not isinstance(inner := value.get("url_citation"), dict):
        return None
    start, end = inner.get("start_index"), inner.get("end_index")
    return Citation(
        url=str(inner.get("url") or ""),
        title=str(inner.get("title") or ""),
        start=start if isinstance(start, int) else None,
        end=end if isinstance(end, int) else None,
        extra={NAME: value},
    )


def body_events(value: JsonObject, *, is_single: bool) -> tuple[list[Event], str]:
    """A whole answer, and what is irregular in it; an error in a 200 is an error all the same."""
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        if value.get("error"):
            return [Failed(error=error_from(502, value, encode(value), {}))], "an error"
        return [Failed(error=garbage(f"the back end's answer has no choices: {shown(encode(value))}"))], "no choices"
    irregular = "" if value.get("id") and value.get("object") == "chat.completion" else "no id or kind"
    created, usage = value.get("created"), value.get("usage")
    known = {"id", "object", "created", "model", "choices", "usage"}
    extra: Extra = {NAME: {key: item for key, item in value.items() if key not in known}}
    parts: list[PartEnded] = []
    ends: list[Choice] = []
    for position, choice in enumerate(choices):
        choice = choice if isinstance(choice, dict) else {}
        index = 0 if is_single else position
        found, faults = _message_parts(choice)
        if any(isinstance(part, ToolCall) and not part.name for part in found):
            return [Failed(error=garbage(_NAMELESS))], "a call without a name"
        parts += [PartEnded(index=0, part=part, choice=index) for part in found]
        finish = choice.get("finish_reason")
        raw = finish if isinstance(finish, str) else ""
        is_known = raw in REASONS and choice.get("index") == position == index
        irregular = irregular or faults or ("" if is_known else "an unknown end or index")
        ends.append(Choice(index=index, reason=reason_of(raw or None), raw_reason=raw))
    if is_single:  # one answer split over two choices (H008): it ends as the one that says more than stop
        ends = [next((end for end in ends if end.reason != "stop"), ends[0])]
    answer = Answer(
        started=Started(
            id=str(value.get("id") or ""),
            model=str(value.get("model") or ""),
            created=created if isinstance(created, int) else None,
            extra=extra,
        ),
        parts=tuple(parts),
        finished=Finished(choices=tuple(ends), usage=usage_in(usage) if isinstance(usage, dict) else None),
    )
    return unfold(answer), irregular


def _message_parts(choice: JsonObject) -> tuple[list[Part], str]:
    message = choice.get("message")
    reading = read_message(message) if isinstance(message, dict) else None
    if reading is None:
        return [], "a choice without a message"
    delta = reading.chunk.choices[0].delta
    parts: list[Part] = []
    if thought := delta.reasoning_content or delta.reasoning:
        parts.append(Reasoning(text=thought, extra={NAME: {}}))
    if delta.content:
        citations = tuple(filter(None, (citation_in(annotation) for _, annotation in reading.annotations)))
        logprobs = choice.get("logprobs")
        parts.append(
            Text(
                text=delta.content,
                citations=citations,
                logprobs=_logprobs(logprobs if isinstance(logprobs, dict) else None, "content"),
            )
        )
    if delta.refusal:
        parts.append(Refusal(text=delta.refusal))
    for call in delta.tool_calls or ():
        function = call.function
        raw = (function.arguments if function else None) or ""
        if not call.is_custom and not raw.strip() and choice.get("finish_reason") != "length":
            raw, reading.faults = "{}", reading.faults or "a call without arguments"
        parts.append(
            ToolCall(
                id=call.id or "",
                name=(function.name if function else None) or "",
                raw=raw,
                args=None if call.is_custom else object_of(raw),
                kind="custom" if call.is_custom else "function",
            )
        )
    for unknown in reading.unknown.get("choices", ()):
        parts.append(Opaque(dialect=NAME, value=unknown.get("delta", {})))
    return parts, reading.faults


def _logprobs(value: JsonObject | None, key: str) -> tuple[Any, ...] | None:
    entries = value.get(key) if value else None
    return tuple(entries) if isinstance(entries, list) and entries else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
