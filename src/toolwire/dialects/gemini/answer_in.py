"""Gemini: answers in, streamed or whole, as canonical events.

A stream has no end mark: it ends with its bytes, and it is complete if each candidate has a finish reason.
"""

from __future__ import annotations

from typing import Any

from ...errors import UpstreamError
from ...events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started
from ...types import Choice, Extra, Json, JsonObject, Opaque, Part, Reason, Reasoning, Refusal, Request, Text, ToolCall
from ...wire.exact_json import BadJson, decode, encode
from ...wire.fields import is_count, text_in
from ...wire.sse import Frame
from ..base import OTHER_CHOICES, cut, excerpt, garbage
from ..shared.answer_in import Assembly, FrameDecoder, OpenPart, is_mark
from ..shared.errors import error_details
from .errors import stream_error
from .shapes import NAME, REASONS, SIGNATURE, citations_in, logprobs_in, name_in, usage_in

_CANDIDATE = frozenset({"content", "finishReason", "index", "logprobsResult"})
_TEXT = frozenset({"text", "thought", SIGNATURE})
_READ = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId", "error", "toolwire"})
_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "totalTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)
_MOST_CANDIDATES = 128
_NAMELESS = "the back end sent a tool call without a name."


class Nameless(ValueError):
    """A call without the name of a tool."""


class Candidate:
    """One candidate of an answer under construction; finish is its finish reason, "" while it is open.

    Adjacent texts are one part, unless one of them is signed: a signature belongs to the part that contains it, and to no other (H074). Signed or
    not, they are one string (is_continuation). A signature without text belongs to the part that follows.
    """

    def __init__(self, assembly: Assembly, index: int, offered: frozenset[str]) -> None:
        self.finish = ""
        self.has_content = False  # text or calls; reasoning alone is no answer
        self.fault = ""  # why clients of this dialect may not understand what came
        self._assembly = assembly
        self._index = index
        self._offered = offered
        self._members: JsonObject = {}
        self._open: OpenPart | None = None
        self._signature = ""  # of what comes next
        self._logprobs: tuple[Json, ...] = ()  # of the text that comes next
        self._has_calls = False
        self.grown: OpenPart | None = None  # the part to which the last chunk added text, if it did nothing else
        self._last: type | None = None  # type of the last part with content
        self._is_partial = False  # arguments come in pieces of their own form, which only their client understands

    @property
    def failed(self) -> bool:
        return self.finish in REASONS and REASONS[self.finish] is None

    @property
    def end_message(self) -> str:
        """The message about the end, next to the finish reason."""
        return text_in(self._members, "finishMessage")

    def read(self, value: JsonObject, *, is_whole: bool) -> list[Event]:
        """One chunk's share. is_whole: its parts are no pieces, and nothing follows. Raises Nameless."""
        events: list[Event] = []
        if "logprobsResult" in value:
            self._logprobs = logprobs_in(value["logprobsResult"])
        content = value.get("content")
        given = content.get("parts") if isinstance(content, dict) else None
        parts = given if isinstance(given, list) else []
        if parts and isinstance(content, dict) and content.get("role") != "model":
            self.fault = "content without the role of a model"
        for part in parts:
            if isinstance(part, dict) and not (part.keys() <= _TEXT and part.get("text", part.get(SIGNATURE)) is None):
                if is_whole:
                    events += self._end_open()
                events += self._part(part)
            else:
                self.fault = "a part without content"
        if events:  # many send a finish reason and continue (H029)
            self.finish = ""
        is_plain = len(parts) == len(events) == 1 and type(events[0]) is PartDelta and events[0].logprobs is None
        self.grown = self._open if is_plain else None
        if not value.keys() <= _CANDIDATE:
            self._members |= {key: item for key, item in value.items() if key not in _CANDIDATE}
        if not isinstance(value.get("finishReason", ""), str):
            self.fault = "a finish reason that is no text"
        self.finish = text_in(value, "finishReason") or self.finish
        return events

    def end(self) -> tuple[list[Event], Choice]:
        reason = self._reason()
        events = self._cited() + self._end_open()
        if reason == "refused" and not self.has_content:
            words = f"The provider ended the answer: {self.finish}."
            events += self._single(Refusal(text="", extra={NAME: {}}), f"{words} {self.end_message}".strip())
        members = self._members | ({SIGNATURE: self._signature} if self._signature else {})
        extra: Extra = {NAME: members} if members else {}
        return events, Choice(reason=reason, raw_reason=self.finish, index=self._index, extra=extra)

    def _reason(self) -> Reason:
        reason = REASONS.get(self.finish, "other") or "other"
        return "tool_calls" if self._has_calls and reason in ("stop", "other") else reason

    def _part(self, part: JsonObject) -> list[Event]:
        if isinstance(call := part.get("functionCall"), dict):
            return self._call(part, call)
        text = part.get("text")
        if not isinstance(text, str) and part.get("thought") is True and part.keys() <= _TEXT:
            text = ""  # a signature alone
        if not isinstance(text, str):
            self.has_content = True
            return [*self._end_open(), *self._signed(), *self._single(Opaque(dialect=NAME, value=part))]
        return self._thought(part, text) if part.get("thought") is True else self._text(part, text)

    def _call(self, part: JsonObject, call: JsonObject) -> list[Event]:
        self._is_partial = self._is_partial or "partialArgs" in call or call.get("willContinue") is True
        self.has_content = True
        events = [*self._end_open(), *self._signed()]
        if self._is_partial:
            return [*events, *self._single(Opaque(dialect=NAME, value=part))]
        name = text_in(call, "name")
        if not name:
            raise Nameless
        self._has_calls = True
        if not isinstance(call.get("args", {}), dict):
            self.fault = "arguments that are no object"
        members = self._members_in(part, "functionCall")
        extra: Extra = {NAME: members} if members else {}
        opening = ToolCall(id=text_in(call, "id"), name=name_in(name, self._offered), raw="", extra=extra)
        return [*events, *self._single(opening, _raw(call.get("args")))]

    def _thought(self, part: JsonObject, text: str) -> list[Event]:
        events = [] if self._open is not None and isinstance(self._open.part, Reasoning) else self._end_open()
        if not text and not part.get(SIGNATURE):
            return events
        if self._open is None:
            events += self._signed()
            opening = Reasoning(text="", is_continuation=self._last is Reasoning, extra={NAME: {}})
            self._open, started = self._assembly.start(opening, self._index)
            events.append(started)
        self._last = Reasoning if text else self._last
        events += self._grow(text)
        if signature := text_in(part, SIGNATURE):
            events += self._assembly.end(self._open, encrypted=signature)
            self._open = self._last = None  # signed reasoning is complete
        return events

    def _text(self, part: JsonObject, text: str) -> list[Event]:
        signature = text_in(part, SIGNATURE)
        if not text:
            events = self._signed() if signature else []
            self._signature = signature or self._signature
            return events
        self.has_content = True
        members = self._members_in(part, "text", "thought") if len(part) > 1 else {}
        if not members and not self._signature and self._is_growing_text():
            return self._grow(text)
        events = [*self._end_open(), *self._signed()]
        extra: Extra = {NAME: members} if members else {}
        opening = Text(text="", is_continuation=self._last is Text, extra=extra)
        self._open, started = self._assembly.start(opening, self._index)
        self._last = Text
        return [*events, started, *self._grow(text)]

    def _members_in(self, part: JsonObject, *known: str) -> JsonObject:
        members = {key: item for key, item in part.items() if key not in known}
        if not isinstance(members.get(SIGNATURE, ""), str):
            self.fault = "a signature that is no text"
            del members[SIGNATURE]
        return members

    def _is_growing_text(self) -> bool:
        part = self._open.part if self._open is not None else None
        return isinstance(part, Text) and not part.extra

    def _grow(self, text: str) -> list[Event]:
        if not text or self._open is None:
            return []
        if not self._logprobs or not isinstance(self._open.part, Text):
            return [self._open.grow(text)]
        entries, self._logprobs = self._logprobs, ()
        return [self._open.grow(text, entries)]

    def _signed(self) -> list[Event]:
        """The signature that waits, before what it led to."""
        if not self._signature:
            return []
        signature, self._signature = self._signature, ""
        growing, started = self._assembly.start(Reasoning(text="", extra={NAME: {}}), self._index)
        return [*self._end_open(), started, *self._assembly.end(growing, encrypted=signature)]

    def _single(self, part: Part, content: str = "") -> list[Event]:
        """A part that is whole at once."""
        self._last = type(part)
        growing, started = self._assembly.start(part, self._index)
        events: list[Event] = [started]
        if content:
            events.append(growing.grow(content))
        return events + self._assembly.end(growing)

    def _end_open(self) -> list[Event]:
        growing, self._open = self._open, None
        return [] if growing is None else self._assembly.end(growing)

    def _cited(self) -> list[Event]:
        """Sources come at the end, and belong to the last text."""
        growing = self._open
        if growing is None or not isinstance(growing.part, Text):
            return []
        growing.citations += citations_in(self._members, growing.content)
        return [Noted(note=citation, index=growing.index) for citation in growing.citations]


def _raw(args: Any) -> str:
    if args is None:
        return "{}"
    return (args if args.strip() else "{}") if isinstance(args, str) else encode(args).decode()


class GeminiStreamDecoder(FrameDecoder):
    def __init__(self, request: Request, *, is_whole: bool = False) -> None:
        super().__init__()
        self._is_whole = is_whole
        self._offered = frozenset(tool.name for tool in request.tools)
        choice = request.tool_choice
        self._may_call = bool(request.tools) and (choice is None or choice.mode != "none")
        self._is_started = False
        self._is_single = request.sampling.choices == 1
        self._candidates: dict[int, Candidate] = {}
        self._has_others = False  # candidates beyond the one requested
        self._usage: JsonObject = {}
        self._members: JsonObject = {}
        self._blocked = ""

    def parse(self, frame: Frame) -> list[Event]:
        if self.is_over:
            return []
        try:
            value = decode(frame.data)
        except BadJson:
            value = None
        if isinstance(value, list):  # a stream that was not requested as server-sent events
            self.irregular = self.irregular or "an array of chunks"
            return [event for item in value for event in self.value(item, frame.data)]
        if b"\n" in frame.data:  # clients of this dialect read each line by itself
            self.irregular = self.irregular or "an event of several lines"
        if value is None and is_mark(frame.data):
            self.irregular = self.irregular or "[DONE]"
            return []
        return self.value(value, frame.data)

    def value(self, value: Any, data: bytes) -> list[Event]:
        """One chunk, or the whole answer."""
        if self.is_over:
            return []
        if not isinstance(value, dict):
            return self.fail(garbage(f"the back end sent an event that is not a JSON object: {excerpt(data)}"))
        if isinstance(inner := value.get("response"), dict) and "candidates" not in value:
            self.irregular, value = self.irregular or "a wrapped answer", inner
        if value.get("error"):
            return self.fail(stream_error(value, data))
        listed = value.get("candidates")
        if not self._is_started and not isinstance(listed, list) and not _is_of_dialect(value):
            details = error_details(value)
            error = stream_error(value, data) if details else garbage(f"the back end sent {excerpt(data)}.")
            return self.fail(error)
        return self._begin(value) + self._chunk(value, listed if isinstance(listed, list) else [])

    def end(self) -> list[Event]:
        if not self._is_started:
            return self.fail(cut("the back end's stream ended before any answer came."))
        if self._blocked and not self._candidates:
            return self._refused()
        if not self._candidates or not all(candidate.finish for candidate in self._candidates.values()):
            return self.fail(cut("the back end's stream ended in the middle of the answer."))
        for candidate in self._candidates.values():
            if candidate.failed:
                return self.fail(_failure(candidate))
        if self._may_call and len(self._candidates) == 1 and self._is_empty():
            return self.fail(_emptiness())
        events: list[Event] = []
        choices: list[Choice] = []
        for _, candidate in sorted(self._candidates.items()):
            ended, choice = candidate.end()
            events += ended
            choices.append(choice)
        return self._finished(events, choices)

    def _begin(self, value: JsonObject) -> list[Event]:
        if not value.keys() <= _READ:
            self._members |= {key: item for key, item in value.items() if key not in _READ}
        if isinstance(usage := value.get("usageMetadata"), dict):
            self._usage |= usage
        if not _is_regular(value, usage):
            self.irregular = self.irregular or "a member that clients do not expect, or of another type"
        if self._is_started:
            return []
        self._is_started = True
        return [
            Started(
                id=text_in(value, "responseId"),
                model=text_in(value, "modelVersion"),
                usage=usage_in(self._usage) if self._usage else None,
                extra={NAME: dict(self._members)},
            )
        ]

    def _chunk(self, value: JsonObject, listed: list[Any]) -> list[Event]:
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict):
            self._blocked = text_in(feedback, "blockReason") or self._blocked
            if not isinstance(feedback.get("blockReason", ""), str):
                self.irregular = self.irregular or "a block reason that is no text"
        events: list[Event] = []
        for place, item in enumerate(listed[:_MOST_CANDIDATES]):
            if not isinstance(item, dict):
                self.irregular = self.irregular or "a candidate that is no object"
                continue
            given = item.get("index", place)
            index = given if type(given) is int and 0 <= given < _MOST_CANDIDATES else place
            known = self._candidates.get(index)
            if (
                known is None and self._candidates and self._is_single
            ):  # another answer: its calls must not mix with these
                self.irregular = self.irregular or "a second candidate where one was requested"
                self._has_others = True
                continue
            if known is None:
                choice = 0 if self._is_single else index
                known = self._candidates[index] = Candidate(self._assembly, choice, self._offered)
            try:
                events += known.read(item, is_whole=self._is_whole)
            except Nameless:
                return events + self.fail(garbage(_NAMELESS))
            self.irregular = self.irregular or known.fault
            if known.grown is not None and len(listed) == 1:
                self.only_grows(known.grown)
        if self._candidates:
            self.is_ending = all(candidate.finish for candidate in self._candidates.values())
        else:
            self.is_ending = bool(self._blocked)
        return events

    def _is_empty(self) -> bool:
        (candidate,) = self._candidates.values()
        return candidate.finish == "STOP" and not candidate.has_content

    def _refused(self) -> list[Event]:
        """The prompt was blocked: there is no candidate, and the reason is all there is."""
        feedback = self._members.get("promptFeedback")
        more = text_in(feedback, "blockReasonMessage") if isinstance(feedback, dict) else ""
        words = f"The provider blocked the prompt: {self._blocked}. {more}".strip()
        refusal = Refusal(text="", extra={NAME: {}})
        growing, started = self._assembly.start(refusal)
        events = [started, growing.grow(words), *self._assembly.end(growing)]
        return self._finished(events, [Choice(reason="refused", raw_reason=self._blocked)])

    def _finished(self, events: list[Event], choices: list[Choice]) -> list[Event]:
        self.is_over = True
        if self._has_others:
            events.append(Noted(note=OTHER_CHOICES))
        usage = usage_in(self._usage) if self._usage else None
        extra = {NAME: self._members} if self._members else {}
        return [*events, Finished(choices=tuple(choices), usage=usage, extra=extra)]


def body_events(request: Request, value: JsonObject) -> tuple[list[Event], str]:
    """A whole answer is a stream of one chunk; what is irregular in it comes with it."""
    decoder = GeminiStreamDecoder(request, is_whole=True)
    events = decoder.value(value, encode(value))
    if not decoder.is_over:
        events += decoder.end()
    if isinstance(events[-1], Failed) and any(isinstance(event, PartStarted | PartEnded) for event in events):
        events = [events[-1]]  # nothing of a body has been sent yet
    return events, decoder.irregular


def _is_regular(value: JsonObject, usage: Any) -> bool:
    """Whether the members of a chunk that are not about its candidates have the types that clients expect."""
    if not isinstance(value.get("responseId", ""), str) or not isinstance(value.get("modelVersion", ""), str):
        return False
    if (
        "error" in value or "toolwire" in value
    ):  # an empty error; the report of another gateway, which would be there twice
        return False
    if usage is None:
        return "usageMetadata" not in value
    return isinstance(usage, dict) and all(is_count(usage.get(key, 0)) for key in _COUNTS)


def _is_of_dialect(value: JsonObject) -> bool:
    """Whether a chunk without candidates is one of this dialect."""
    return isinstance(value.get("promptFeedback"), dict) or isinstance(value.get("usageMetadata"), dict)


def _failure(candidate: Candidate) -> UpstreamError:
    """The model wrote an invalid call, or one for a tool that it was not offered; a retry may succeed."""
    message = f"the back end ended its answer with {candidate.finish}"
    return UpstreamError(
        f"{message}: {candidate.end_message}" if candidate.end_message else f"{message} and no message.",
        status=502,
        code="malformed_tool_call" if "CALL" in candidate.finish else "upstream_error",
        hint="The model wrote a tool call that its provider could not read; try again, or simplify the tools' schemas."
        if "CALL" in candidate.finish
        else "",
        retryable=True,
    )


def _emptiness() -> UpstreamError:
    """An empty answer to a request with tools is an error: some schemas are refused in this way (H061)."""
    return UpstreamError(
        "the back end ended its answer without text and without a call.",
        status=502,
        code="empty_answer",
        hint="Try again; if it happens again, the back end may not accept the schema of a tool.",
        retryable=True,
    )
