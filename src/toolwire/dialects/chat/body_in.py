"""Chat Completions: a whole answer in, as canonical events; and which of several choices is the answer.

If the request asks for one choice, choice 0 is the answer. Copilot splits an answer over two choices, text in choice 0 and calls in choice 1
(H008); other servers send several answers. The second half of a split answer has the calls that choice 0 lacks and no text of its own, and is
merged into choice 0. Everything else is another answer: it is dropped and reported as a loss, because calls of two answers must not mix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, DecodeError, Meta, Struct, UnsetType

from ...errors import UpstreamError
from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded, PartStarted, Started, unfold
from ...types import (
    Choice,
    Extra,
    Json,
    JsonObject,
    Loss,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Request,
    Text,
    ToolCall,
)
from ...wire.exact_json import BadJson, encode, object_of, typed_decoder
from ..base import OTHER_CHOICES, excerpt, garbage
from ..shared.errors import error_details, error_from
from .reasoning_details import MEMBER, words_in
from .shapes import (
    FAILED,
    NAME,
    NAMELESS,
    REASONS,
    ChunkChoice,
    ChunkDelta,
    citation_in,
    fault_in,
    is_counted,
    logprobs_in,
    read_message,
    reason_of,
    usage_in,
)

_Empty: TypeAlias = Annotated[list[Json], Meta(max_length=0)]
_NO_TEXT = Text(text="")
_TOP = frozenset({"id", "object", "created", "model", "choices", "usage", "error"})
_PLAIN = frozenset({"role", "content", "refusal", "annotations"})


class _RegularMessage(Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: Annotated[str, Meta(min_length=1)]
    refusal: None = None
    annotations: _Empty | None = None
    tool_calls: _Empty | None = None


class _RegularChoice(Struct, forbid_unknown_fields=True):
    message: _RegularMessage
    finish_reason: Literal["stop", "length", "content_filter"]
    index: Literal[0]
    logprobs: None = None


class _RegularBody(Struct, forbid_unknown_fields=True):
    id: Annotated[str, Meta(min_length=1)]
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: Annotated[list[_RegularChoice], Meta(min_length=1, max_length=1)]
    usage: JsonObject
    system_fingerprint: str | UnsetType | None = UNSET
    service_tier: str | UnsetType | None = UNSET


_regular = typed_decoder(_RegularBody)


def regular_body_events(request: Request, body: bytes) -> list[Event] | None:
    """The events of a body that is as documented and has one text, as most have; None for any other, which body_events() reads."""
    try:
        answer = _regular.decode(body)
    except (DecodeError, UnicodeError, RecursionError, BadJson):
        return None
    if request.sampling.choices != 1 or not is_counted(answer.usage):
        return None
    [choice] = answer.choices
    unknown: JsonObject = {}
    if answer.system_fingerprint is not UNSET:
        unknown["system_fingerprint"] = answer.system_fingerprint
    if answer.service_tier is not UNSET:
        unknown["service_tier"] = answer.service_tier
    text, finish = choice.message.content, choice.finish_reason
    return [
        Started(id=answer.id, model=answer.model, created=answer.created, extra={NAME: unknown}),
        PartStarted(index=0, part=_NO_TEXT),
        PartDelta(0, text),
        PartEnded(index=0, part=Text(text=text)),
        Finished(choices=(Choice(reason=REASONS[finish], raw_reason=finish),), usage=usage_in(answer.usage)),
    ]


def body_events(request: Request, value: JsonObject) -> tuple[list[Event], str]:
    """The events of a whole answer, and what is irregular in it. An error with status 200 is an error."""
    choices, is_single = value.get("choices"), request.sampling.choices == 1
    if (fault := fault_in(value)) is not None:
        return [Failed(error=fault)], "an error"
    if not isinstance(choices, list) and error_details(value):
        return [Failed(error=error_from(502, value, encode(value), {}))], "an error"
    if not isinstance(choices, list) or not choices:
        return [Failed(error=garbage(f"the back end's answer has no choices: {excerpt(encode(value))}"))], "no choices"
    created, usage = value.get("created"), value.get("usage")
    irregular = "" if value.get("id") and value.get("object") == "chat.completion" else "no id or kind"
    if isinstance(usage, dict) and usage and not is_counted(usage):
        irregular = irregular or "usage that is no count"
    unknown = {} if value.keys() <= _TOP else {key: item for key, item in value.items() if key not in _TOP}
    extra: Extra = {NAME: unknown}
    parts: list[list[Part]] = []
    ends: list[Choice] = []
    for position, choice in enumerate(choices):
        choice = choice if isinstance(choice, dict) else {}
        index = 0 if is_single else position
        found, faults = _message_parts(choice)
        if found is None:
            return [Failed(error=garbage(f"the back end's answer has no message: {excerpt(encode(value))}"))], faults
        for part in found:
            if isinstance(part, ToolCall) and not part.name:
                return [Failed(error=garbage(NAMELESS))], "a call without a name"
        parts.append(found)
        finish = choice.get("finish_reason")
        raw = finish if isinstance(finish, str) else ""
        is_known = raw in REASONS and choice.get("index") == position == index
        irregular = irregular or faults or ("" if is_known else "an unknown end or index")
        reason = reason_of(raw or None)
        if reason is None:
            return [Failed(error=UpstreamError(FAILED))], "an error"
        ends.append(Choice(index=index, reason=reason, raw_reason=raw))
    losses: list[Loss] = []
    if is_single and len(parts) > 1:
        only, end, losses = one_answer(parts, ends)
        parts, ends = [only], [end]
    answer = FoldedAnswer(
        started=Started(
            id=str(value.get("id") or ""),
            model=str(value.get("model") or ""),
            created=created if isinstance(created, int) else None,
            extra=extra,
        ),
        parts=tuple([PartEnded(index=0, part=part, choice=index) for index, own in enumerate(parts) for part in own]),
        finished=Finished(choices=tuple(ends), usage=usage_in(usage) if isinstance(usage, dict) else None),
    )
    events = unfold(answer)
    for loss in losses:
        events.insert(-1, Noted(note=loss))
    return events, irregular


def _message_parts(choice: JsonObject) -> tuple[list[Part] | None, str]:
    """The parts of a message, None if there is none; some servers call it a delta here too."""
    message = choice.get("message")
    if isinstance(message, dict) and _is_plain(message):
        return [Text(text=message["content"], logprobs=_logprobs_of(choice))], ""
    reading = read_message(message if isinstance(message, dict) else choice.get("delta"))
    if reading is None:
        return None, "a choice without a message"
    if not isinstance(message, dict) or message.get("role") != "assistant":
        reading.faults = reading.faults or "a message without its role"
    delta = reading.chunk.choices[0].delta
    parts: list[Part] = []
    details = delta.reasoning_details
    thought = delta.reasoning_content or delta.reasoning or (words_in(details) if details else "")
    if thought or details:
        parts.append(Reasoning(text=thought, extra={NAME: {MEMBER: details} if details else {}}))
    if delta.content:
        found = [citation_in(annotation) for _, annotation in reading.annotations] if reading.annotations else ()
        citations = tuple(filter(None, found))
        parts.append(Text(text=delta.content, citations=citations, logprobs=_logprobs_of(choice)))
    if delta.refusal:
        parts.append(Refusal(text=delta.refusal))
    for call in delta.tool_calls or ():
        function = call.function
        raw = (function.arguments if function else None) or ""
        is_cut = reason_of(choice.get("finish_reason")) in ("length", "refused")
        if not call.is_custom and not raw.strip() and not is_cut:
            raw, reading.faults = "{}", reading.faults or "a call without arguments"
        if call.type is None:
            reading.faults = reading.faults or "a call without its type"
        parts.append(
            ToolCall(
                id=call.id or "",
                name=(function.name if function else None) or "",
                raw=raw,
                args=None if call.is_custom else object_of(raw),
                kind="custom" if call.is_custom else "function",
                extra={NAME: call.members} if call.members else {},
            )
        )
    for unknown in reading.unknown.get("choices", ()):
        parts.append(Opaque(dialect=NAME, value=unknown.get("delta", {})))
    return parts, reading.faults


def _is_plain(message: JsonObject) -> bool:
    """Whether it is a text of the assistant and nothing else."""
    content = message.get("content")
    if message.get("role") != "assistant" or not content or not isinstance(content, str):
        return False
    return message.keys() <= _PLAIN and not (message.get("refusal") or message.get("annotations"))


def _logprobs_of(choice: JsonObject) -> tuple[Any, ...] | None:
    logprobs = choice.get("logprobs")
    return logprobs_in(logprobs, "content") if isinstance(logprobs, dict) else None


class OtherChoices:
    """The choices of a stream except choice 0, buffered until choice 0 has ended and it is known whether it has calls."""

    def __init__(self) -> None:
        self._held: dict[int, list[ChunkChoice]] = {}
        self._taken: int | None = None
        self._has_lost = False

    def hold(self, choice: ChunkChoice) -> None:
        self._held.setdefault(choice.index, []).append(choice)

    def half(self, *, is_missing: bool) -> list[ChunkChoice]:
        """Buffered chunks of the second half, calls only. is_missing: choice 0 has no calls."""
        if self._taken is None and is_missing:
            self._taken = next((index for index, held in sorted(self._held.items()) if _is_half(held)), None)
        held = self._held.pop(self._taken, []) if self._taken is not None else []
        self._has_lost = self._has_lost or any(choice.delta.has_text for choice in held)
        return [_only_calls(choice) for choice in held]

    def whole(self) -> list[ChunkChoice]:
        """All chunks of the first choice with content, for the case that choice 0 is empty."""
        index = next((index for index in sorted(self._held) if _says_something(self._held[index])), None)
        return [] if index is None else self._held.pop(index)

    @property
    def losses(self) -> list[Loss]:
        return [OTHER_CHOICES] if self._has_lost or any(map(_says_something, self._held.values())) else []


def one_answer(parts: Sequence[list[Part]], ends: Sequence[Choice]) -> tuple[list[Part], Choice, list[Loss]]:
    """The same rule for a whole answer: parts and ends of each choice in, those of the one answer out."""
    filled = [place for place, own in enumerate(parts) if own]
    first = filled[0] if filled else 0
    others = filled[1:]
    half = next((place for place in others if _have_calls(parts[place]) and not _have_text(parts[place])), None)
    if half is None or _have_calls(parts[first]):
        return parts[first], ends[first], [OTHER_CHOICES] if others else []
    calls = [part for part in parts[half] if isinstance(part, ToolCall)]
    end = ends[half] if ends[first].reason == "stop" else ends[first]
    return [*parts[first], *calls], end, [OTHER_CHOICES] if len(others) > 1 else []


def _have_calls(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, ToolCall) for part in parts)


def _have_text(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, Text | Refusal) for part in parts)


def _is_half(held: list[ChunkChoice]) -> bool:
    return any(choice.delta.tool_calls for choice in held) and not any(choice.delta.has_text for choice in held)


def _says_something(held: list[ChunkChoice]) -> bool:
    return any(choice.delta.says_something for choice in held)


def _only_calls(choice: ChunkChoice) -> ChunkChoice:
    return ChunkChoice(
        delta=ChunkDelta(tool_calls=choice.delta.tool_calls),
        index=choice.index,
        finish_reason=choice.finish_reason,
        is_message=choice.is_message,
    )
