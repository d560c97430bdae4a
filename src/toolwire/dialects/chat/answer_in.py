"""Chat Completions: streamed answers in, as canonical events.

Errors of back ends are corrected by state, never by comparing content: indices are our own, an id decides which call a fragment
belongs to, a finish reason is held until the stream really ends, usage ends nothing. Each correction is recorded in `irregular`.

The dialect has no event for the end of a call. A call with complete arguments ends as soon as another part of its choice starts or grows, so that
encoders which write one part at a time can go on. Until then it stays open: anything the model writes after the arguments is part of them.
"""

from __future__ import annotations

from ...errors import UpstreamError
from ...events import Event, Finished, Noted, Started
from ...types import (
    Choice,
    Json,
    JsonObject,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    Usage,
)
from ...wire.exact_json import BadJson
from ...wire.sse import Frame
from ..base import cut, excerpt, garbage
from ..shared.answer_in import FrameDecoder, OpenPart, is_mark
from ..shared.errors import error_from
from .body_in import OtherChoices
from .open_calls import OpenCall, OpenCalls
from .reasoning_details import MEMBER, Details, words_in
from .shapes import (
    FAILED,
    NAME,
    NAMELESS,
    REASONS,
    CallDelta,
    Chunk,
    ChunkChoice,
    ChunkDelta,
    ChunkReading,
    citation_in,
    fault_in,
    is_counted,
    logprobs_in,
    read_by_hand,
    read_fast,
    reason_of,
    usage_in,
)


class _Choice:
    """What is open in one choice. has_deltas: content came as deltas, so that a whole message can only repeat it."""

    __slots__ = (
        "calls",
        "details",
        "ended_by",
        "finish",
        "has_details",
        "has_thoughts",
        "is_resumed",
        "has_deltas",
        "kinds",
        "newest",
        "reasoning",
        "refusal",
        "text",
    )

    def __init__(self) -> None:
        self.text: OpenPart | None = None
        self.reasoning: OpenPart | None = None
        self.details: Details | None = None  # of the open reasoning
        self.has_details = False
        self.has_thoughts = False  # has text in a member of its own, which the details repeat
        self.refusal: OpenPart | None = None
        self.calls = OpenCalls()
        self.finish: str | None = None
        self.ended_by = 0
        self.is_resumed = False  # content came after its end
        self.has_deltas = False
        self.newest = -1  # the index of the part that began last
        self.kinds: set[type] = (
            set()
        )  # of the texts that have begun: each kind is one string here, whatever interrupts it


class ChatStreamDecoder(FrameDecoder):
    def __init__(self, request: Request) -> None:
        super().__init__()
        self._is_single = request.sampling.choices == 1
        self._wants_usage = request.stream_usage
        self._offered = frozenset([tool.label or tool.name for tool in request.tools])
        self._choices: dict[int, _Choice] = {}
        self._others: OtherChoices | None = None  # beyond the one requested
        self._started: Started | None = None
        self._usage: Usage | None = None
        self._has_usage = False  # in a chunk of its own

    def parse(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        data = frame.data
        if data == b"[DONE]":
            return self._finish(is_marked=True)
        events: list[Event] = []
        reading: ChunkReading | None = None
        chunk = read_fast(data)
        if chunk is None:
            if is_mark(data):
                self.irregular = self.irregular or "blanks around the mark"
                return self._finish(is_marked=True)
            try:
                reading = read_by_hand(data)
            except BadJson as fault:
                return self.fail(garbage(f"the back end sent a chunk that is not JSON ({fault}): {excerpt(data)}"))
            if failed := self._fault_in(reading, frame):
                return failed
            if self._is_single:
                reading.keep_first_choice()
            chunk = reading.chunk
            self._start(chunk, events, reading)
            if reading.unknown:
                events.append(Noted(note=Opaque(dialect=NAME, value=reading.unknown)))
        elif (started := self._started) is None or not (
            started.id == chunk.id and started.created == chunk.created and started.model == chunk.model
        ):
            self._start(chunk, events, None)
        for choice in chunk.choices:
            if choice.index != 0 and self._is_single:
                self._other(choice, events)
            else:
                self._choice(choice, self._state(choice), events)
        if len(chunk.choices) != 1:
            self.parse_next()
        if chunk.usage is not None:
            self._count(chunk)
        elif not chunk.choices and (reading is None or not (reading.unknown or len(events) == 1)):
            self.irregular = self.irregular or "a chunk without content"
        if reading is not None and reading.annotations:
            self._cite(reading, events)
        return events

    def end(self) -> list[Event]:
        return self._finish(is_marked=False)

    def _fault_in(self, reading: ChunkReading, frame: Frame) -> list[Event]:
        value = reading.value
        if (fault := fault_in(value)) is not None:
            return self.fail(fault)
        if frame.event == "error":
            return self.fail(error_from(502, value, frame.data, {}))
        is_chunk = isinstance(value.get("choices"), list) or value.get("object") == "chat.completion.chunk"
        if not is_chunk and not isinstance(value.get("usage"), dict):  # Ollama sends an error message as a key (H114)
            return self.fail(garbage(f"the back end sent {excerpt(frame.data)} where a chunk was expected."))
        self.irregular = self.irregular or reading.faults
        return []

    def _count(self, chunk: Chunk) -> None:
        """Usage does not end the answer (H013). It is due once, at the end, in a separate chunk if the client requested it."""
        usage = chunk.usage or {}
        self._usage = usage_in(usage)
        if not is_counted(usage):
            self.irregular = self.irregular or "usage that is no count"
        if not self.is_ending or self._has_usage or (chunk.choices and self._wants_usage):
            self.irregular = self.irregular or "usage out of its place"
        self._has_usage = self._has_usage or not chunk.choices

    def _start(self, chunk: Chunk, events: list[Event], reading: ChunkReading | None) -> None:
        started = self._started
        if started is not None:
            if chunk.id != started.id or chunk.created != started.created or chunk.model != started.model:
                self.irregular = self.irregular or "the id, time or model of the answer changed"
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

    def _cite(self, reading: ChunkReading, events: list[Event]) -> None:
        for index, annotation in reading.annotations:
            if citation := citation_in(annotation):
                state = self._choices.get(index)
                growing = None if state is None else state.text
                if growing is not None:
                    growing.citations.append(citation)
                events.append(Noted(note=citation, index=growing.index if growing else None))

    def _state(self, choice: ChunkChoice) -> _Choice:
        state = self._choices.get(choice.index)
        if state is None:
            state = self._choices[choice.index] = _Choice()
            if choice.delta.role != "assistant":
                self.irregular = self.irregular or "a first delta without its role"
        return state

    def _other(self, choice: ChunkChoice, events: list[Event]) -> None:
        self.irregular = self.irregular or "a second choice where one was requested"
        others = self._others = self._others or OtherChoices()
        others.hold(choice)
        state = self._choices.get(0)
        if state is not None and state.finish is not None:
            self._join(state, others, events)

    def _join(self, state: _Choice, others: OtherChoices, events: list[Event]) -> None:
        """Choice 0 has ended: if it has no calls, they may be in another choice (H008)."""
        for choice in others.half(is_missing=not state.calls.all):
            self._choice(choice, state, events)

    def _choice(self, choice: ChunkChoice, state: _Choice, events: list[Event]) -> None:
        delta = choice.delta
        if choice.is_message:
            if state.has_deltas:  # a copy of what was streamed (H015)
                delta = _missing(delta, state)
        elif not state.has_deltas:
            state.has_deltas = bool(delta.content or delta.tool_calls or delta.reasoning_content or delta.reasoning)
        if choice.finish_reason == "":
            self.irregular = self.irregular or "an empty finish reason"
        if state.finish is not None and not choice.finish_reason and delta.says_something:
            self.irregular = self.irregular or "content after the finish reason"
            state.is_resumed = True
        self._words(state, choice, delta, events)
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._call(state, choice.index, call, events)
            if len(delta.tool_calls) != 1:
                self.parse_next()
        if delta.refusal:
            if state.refusal is None:
                opening = Refusal(text="", is_continuation=Refusal in state.kinds)
                state.refusal = self._begin(state, choice.index, opening, events)
            self._say(state, state.refusal, delta.refusal, None, events)
        if choice.finish_reason:
            self._end_choice(state, choice, choice.finish_reason)
            if self._others is not None:
                self._join(state, self._others, events)

    def _words(self, state: _Choice, choice: ChunkChoice, delta: ChunkDelta, events: list[Event]) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            state.has_thoughts = True
            self._think(state, choice.index, thought, events)
        if delta.reasoning_details is not None:
            self._detail(state, choice.index, delta.reasoning_details, events)
        if delta.content:
            growing = state.text
            if growing is None:
                text = Text(text="", is_continuation=Text in state.kinds)
                growing = state.text = self._begin(state, choice.index, text, events)
            self._say(state, growing, delta.content, logprobs_in(choice.logprobs, "content"), events)

    def _say(
        self, state: _Choice, growing: OpenPart, text: str, logprobs: tuple[Json, ...] | None, events: list[Event]
    ) -> None:
        if state.calls.current is not None:
            self._turn_to(None, state, events)
        events.append(self.only_grows(growing).grow(text) if logprobs is None else growing.grow(text, logprobs))

    def _think(self, state: _Choice, choice: int, thought: str, events: list[Event]) -> OpenPart:
        growing = state.reasoning
        if growing is None:
            part = Reasoning(text="", is_continuation=Reasoning in state.kinds, extra={NAME: {}})
            growing = state.reasoning = self._begin(state, choice, part, events)
        if thought:
            self._say(state, growing, thought, None, events)
        return growing

    def _detail(self, state: _Choice, choice: int, pieces: list[Json], events: list[Event]) -> None:
        """A client of this dialect gets the pieces as they come; the part ends with all of them joined."""
        growing = self._think(state, choice, "" if state.has_thoughts else words_in(pieces), events)
        state.has_details = True
        state.details = state.details or Details()
        state.details.add(pieces)
        chunk: JsonObject = {"choices": [{"index": choice, "delta": {MEMBER: pieces}}]}
        events.append(Noted(note=Opaque(dialect=NAME, value=chunk), index=growing.index))

    def _prove(self, state: _Choice) -> None:
        """The open reasoning is about to end: store its details, which were unknown at its start."""
        growing, details = state.reasoning, state.details
        if growing is not None and details is not None and isinstance(growing.part, Reasoning):
            growing.part.extra[NAME][MEMBER] = details.whole()
        state.details = None

    def _end_choice(self, state: _Choice, choice: ChunkChoice, finish: str) -> None:
        """Held until the stream really ends (H029)."""
        self.is_ending = True
        calls = state.calls
        if state.finish is not None:
            self.irregular = self.irregular or "a second finish reason"
        if finish not in REASONS:
            self.irregular = self.irregular or "an unknown finish reason"
        elif (finish == "stop" and calls.all) or (finish == "tool_calls" and not calls.all):
            self.irregular = self.irregular or "a finish reason that hides or promises a call"
        if not self.irregular and any(call.is_blank for call in calls.all):
            self.irregular = "a call without arguments"  # vLLM omits arguments that are "{}" (H109)
        state.is_resumed = False
        if state.finish is None or finish != "stop" or choice.index == state.ended_by:
            state.finish, state.ended_by = finish, choice.index

    def _begin(self, state: _Choice, choice: int, part: Part, events: list[Event]) -> OpenPart:
        """Start a part; whatever is certainly complete ends first, so that parts do not overlap."""
        self._prove(state)
        for growing in (state.reasoning, state.text, state.refusal):
            if growing is not None:
                events += self._assembly.end(growing)
        state.reasoning = state.text = state.refusal = None
        self._turn_to(None, state, events)
        growing, started = self._assembly.start(part, 0 if self._is_single else choice)
        state.newest = growing.index
        state.kinds.add(type(part))
        events.append(started)
        return growing

    def _turn_to(self, call: OpenCall | None, state: _Choice, events: list[Event]) -> None:
        """The next fragment is of this call, or of no call: end the call of the last fragment if its arguments are complete."""
        last, state.calls.current = state.calls.current, call
        if last is not None and last is not call:
            self._end_whole(last, events)

    def _end_whole(self, call: OpenCall, events: list[Event]) -> None:
        if call.growing is not None and self._assembly.is_open(call.growing) and call.is_whole:
            events += self._assembly.end(call.growing)

    def _add(self, state: _Choice, call: OpenCall, arguments: str, events: list[Event]) -> None:
        """More arguments of a call that has started. If later parts wait for it, the call ends as soon as it is complete."""
        if call is not state.calls.current:
            self._turn_to(call, state, events)
        growing = call.growing
        if growing is None or not self._assembly.is_open(growing):  # it ended because it was whole: a copy (H015)
            if arguments.strip():
                self.irregular = self.irregular or "arguments after their end"
        elif growing.index == state.newest:
            events.append(self.only_grows(growing).grow(arguments))
        else:
            events.append(growing.grow(arguments))
            self._end_whole(call, events)

    def _call(self, state: _Choice, choice: int, call: CallDelta, events: list[Event]) -> None:
        function, calls = call.function, state.calls
        if function is not None and not call.id and not function.name:
            known = calls.at(call.index)
            if known is not None and known.is_started:
                if function.arguments:
                    self._add(state, known, function.arguments, events)
                return
        name = (function.name if function else None) or ""
        arguments = (function.arguments if function else None) or ""
        found = calls.find(call, name)
        if found is None:
            if (
                call.index != len(calls.all)
                or not call.id
                or not name
                or (call.type != "function" and not call.is_custom)
            ):
                self.irregular = self.irregular or "a call without index, id, type or name, or out of order"
            for earlier in calls.all[-1:]:
                self._advance(state, choice, earlier, events, is_certain=True)
            found = calls.begin(call, name)
        elif call.id or name or call.index is None:
            self.irregular = self.irregular or "a call's id or name again, or no index"
            if found.name and found.twin is None and found.is_whole and (arguments or name):
                found = calls.doubt(call, name, found)
        calls.note(call, found)
        found.id = found.id or call.id or ""
        if name and not found.is_started and name != found.name and not (found.name and found.has_arguments):
            found.name += name
        if arguments and found.is_started:
            self._add(state, found, arguments, events)
        elif arguments:
            found.add(arguments)
        if call.members and not found.is_started:
            found.members |= call.members
        self._advance(state, choice, found, events)

    def _advance(
        self, state: _Choice, choice: int, call: OpenCall, events: list[Event], *, is_certain: bool = False
    ) -> None:
        """Start the call, unless it may be a copy or more of its name may follow."""
        if call.twin is not None and state.calls.resolve(call) is None:
            return
        if call.is_started or not call.name:
            return
        if not (is_certain or call.has_arguments or not self._offered or call.name in self._offered):
            self.irregular = self.irregular or "a name that was not offered"
            return
        events += call.start(self._begin(state, choice, call.opening(), events))
        state.calls.current = call

    def _finish(self, *, is_marked: bool) -> list[Event]:
        events: list[Event] = []
        if self._others is not None:
            self._join_last(self._others, events)
        if self._started is None or not self._choices:
            return self.fail(cut("the back end's stream ended before any answer came."))
        for index, state in self._choices.items():
            self._resolve_calls(state, index, events)
            self._prove(state)
        if (fault := self._fault_at_end(is_marked)) is not None:
            return self.fail(fault)
        self.is_over = True
        choices: list[Choice] = []
        is_cut = False
        for index, state in sorted(self._choices.items()):
            reason = reason_of(state.finish) or "other"
            is_cut = is_cut or reason in ("length", "refused")
            choices.append(Choice(index=0 if self._is_single else index, reason=reason, raw_reason=state.finish or ""))
        return [*events, *self._assembly.end_all(is_cut=is_cut), Finished(choices=tuple(choices), usage=self._usage)]

    def _fault_at_end(self, is_marked: bool) -> UpstreamError | None:
        """Why the answer is not complete, although the stream has ended."""
        states = self._choices.values()
        if None in [state.finish for state in states]:
            self.irregular = self.irregular or "no finish reason"
            if not is_marked or any(self._is_broken(state) for state in states):
                return cut("the back end's stream ended in the middle of the answer.")
        if not is_marked:
            self.irregular = self.irregular or "no end mark"
            if any(state.is_resumed for state in states):
                return cut("the back end's stream continued after its end and stopped in the middle.")
        if None in [reason_of(state.finish) for state in states]:
            return UpstreamError(FAILED)
        if "" in [call.name for state in states for call in state.calls.all]:
            return garbage(NAMELESS)
        return None

    def _join_last(self, others: OtherChoices, events: list[Event]) -> None:
        state = self._choices.get(0) or _Choice()
        self._join(state, others, events)
        if self._assembly.count == 0 and not state.calls.all and (instead := others.whole()):
            self._choices[0] = state
            for choice in instead:
                self._choice(choice, state, events)
        events += [Noted(note=loss) for loss in others.losses]

    def _resolve_calls(self, state: _Choice, choice: int, events: list[Event]) -> None:
        """Decide about the calls that waited for more of their names, or for proof that they are no copies."""
        for call in list(state.calls.doubtful):
            state.calls.resolve(call, is_last=True)
        for call in state.calls.all:
            if not call.is_started:
                self._advance(state, choice, call, events, is_certain=True)

    def _is_broken(self, state: _Choice) -> bool:
        return any(not call.is_started or not (call.is_blank or call.is_whole) for call in state.calls.all)


def _missing(delta: ChunkDelta, state: _Choice) -> ChunkDelta:
    """The content of a whole message that was not streamed before."""
    return ChunkDelta(
        content=delta.content if state.text is None and not state.calls.all else None,
        tool_calls=delta.tool_calls if not state.calls.all else None,
        refusal=delta.refusal if state.refusal is None else None,
        reasoning_details=delta.reasoning_details if not state.has_details else None,
    )
