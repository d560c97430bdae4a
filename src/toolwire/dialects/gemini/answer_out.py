"""Gemini: canonical events out, as chunks or as one answer.

Text is sent as it comes. A call is sent whole, because its arguments are an object here. Parts of a candidate are sent in order: a
later part waits until those before it have ended.
"""

from __future__ import annotations

from typing import assert_never

from ...events import Event, Failed, Finished, FoldedAnswer, Noted, PartDelta, PartEnded, PartStarted, Started
from ...types import (
    Choice,
    Json,
    JsonObject,
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
    Usage,
)
from ...wire.exact_json import encode
from ...wire.sse import Frame
from ..base import AnswerContext
from ..shared.answer_out import Seams, with_seams
from ..shared.calls import arguments_of
from ..shared.sealed_reasoning import sealed_out
from .errors import error_object
from .shapes import FINISH, NAME, REASONS, SIGNATURE, citation_out, logprobs_out, usage_out

_CITED = "citationMetadata"
_PIECE = b'data: {"candidates":[{"content":{"parts":[{"text":'


def frame_of(value: JsonObject) -> bytes:
    return b"data: " + encode(value) + b"\n\n"


class GeminiStreamEncoder:
    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._top: JsonObject = {}
        self._current: dict[int, int] = {}  # the part of each candidate that is being written
        self._choices: dict[int, int] = {}  # whose an open part is
        self._parts: dict[int, Part] = {}  # open ones, as they started
        self._waiting: dict[int, dict[int, list[Event]]] = {}
        self._citations: dict[int, list[JsonObject]] = {}
        self._rests: dict[int, bytes] = {}  # the bytes after the text of a chunk
        self._seams = Seams(is_strict=True)  # chunks have no boundary between two texts
        self._late: set[int] = set()  # parts whose first delta may need a seam

    def send(self, event: Event) -> bytes:
        match event:
            case PartDelta():
                return self._delta(event)
            case Started():
                self._top = envelope_of(event, self._context)
                return b""
            case PartStarted():
                return self._open(event)
            case PartEnded():
                return self._end(event)
            case Noted():
                return b""  # sources are sent at the end in this dialect
            case Finished():
                return self._finish(event)
            case Failed():
                return frame_of({"error": error_object(event.error)})
            case _:
                assert_never(event)

    def observe(self, event: Event) -> None:
        """The back end's own chunks were forwarded; store only what later ones need."""
        match event:
            case Started() | PartStarted():
                self.send(event)
                self._late.clear()
            case PartEnded():
                self._forget(event)
            case _:
                pass

    def passed(self, frame: Frame) -> None:
        pass

    def resume(self, last: Frame | None) -> None:
        pass

    def close(self) -> bytes:
        return b""

    def final(self) -> JsonObject | None:
        return {"id": self._top.get("responseId", "")}

    def _open(self, event: PartStarted) -> bytes:
        self._choices[event.index] = event.choice
        if self._current.setdefault(event.choice, event.index) != event.index:
            self._waiting.setdefault(event.choice, {})[event.index] = [event]
            return b""
        self._parts[event.index] = event.part
        if self._seams.begin(event):
            self._late.add(event.index)
        return b""

    def _delta(self, event: PartDelta) -> bytes:
        choice = self._choices.get(event.index, 0)
        if self._is_waiting(choice, event.index, event):
            return b""
        if event.index in self._late:
            return self._first_words(event)
        match self._parts.get(event.index):
            case Text() | Refusal() as part if not _is_own_note(part):
                if _is_signed(part):  # it is sent whole, with its signature
                    return b""
                if event.logprobs:
                    return self._chunk(choice, {"text": event.text}, **logprobs_out(event.logprobs))
                return self._piece(choice, event.text)
            case Reasoning():
                return self._piece(choice, event.text, b',"thought":true')
            case _:
                return b""

    def _first_words(self, event: PartDelta) -> bytes:
        self._late.discard(event.index)
        between = self._seams.before(event)
        opening = self._delta(PartDelta(event.index, between)) if between else b""
        return opening + self._delta(event)

    def _piece(self, choice: int, text: str, flag: bytes = b"") -> bytes:
        """A chunk of text only, of which an answer has hundreds: only the text is encoded."""
        rest = self._rests.get(choice)
        if rest is None:
            rest = b'}],"role":"model"},"index":%d}],' % choice + encode(self._envelope())[1:] + b"\n\n"
            self._rests[choice] = rest
        return _PIECE + encode(text) + flag + rest

    def _end(self, event: PartEnded) -> bytes:
        if self._is_waiting(event.choice, event.index, event):
            return b""
        part = event.part
        self._forget(event)
        match part:
            case Text():
                self._cite(event.choice, part)
                likely = logprobs_out(part.logprobs or ())
                output = self._chunk(event.choice, *parts_out(part), **likely) if _is_signed(part) else b""
            case Refusal():
                output = b""
            case Reasoning():
                proof = signature_of(part)
                last = {"text": "", **({"thought": True} if part.text or not _is_own(part) else {}), SIGNATURE: proof}
                output = self._chunk(event.choice, last) if proof else b""
            case _:
                output = self._chunk(event.choice, *written) if (written := parts_out(part)) else b""
        return output + self._resume(event.choice)

    def _forget(self, event: PartEnded) -> None:
        self._parts.pop(event.index, None)
        self._current.pop(event.choice, None)
        self._late.discard(event.index)
        self._seams.end(event)

    def _cite(self, choice: int, part: Text) -> None:
        found = [value for citation in part.citations if (value := citation_out(citation, part.text)) is not None]
        self._citations.setdefault(choice, []).extend(found)

    def _resume(self, choice: int) -> bytes:
        """Send what waited, up to the next part that is still open."""
        output = b""
        waiting = self._waiting.get(choice, {})
        while waiting and choice not in self._current:
            events = waiting.pop(next(iter(waiting)))
            output += b"".join(self.send(event) for event in events)
        return output

    def _is_waiting(self, choice: int, index: int, event: Event) -> bool:
        events = self._waiting.get(choice, {}).get(index)
        if events is None:
            return False
        events.append(event)
        return True

    def _envelope(self) -> JsonObject:
        """The members of every chunk, also for an answer that never began."""
        if not self._top:
            self._top = envelope_of(Started(id="", model=""), self._context)
        return self._top

    def _chunk(self, choice: int, *parts: JsonObject, **members: Json) -> bytes:
        content = {"parts": list(parts), "role": "model"}
        return frame_of({"candidates": [{"content": content, "index": choice, **members}], **self._envelope()})

    def _finish(self, event: Finished) -> bytes:
        value: JsonObject = {"candidates": [self._ending(choice) for choice in event.choices]}
        if is_blocked(event):
            value = {}
        value["usageMetadata"] = usage_out(event.usage or Usage())
        return frame_of({**value, **self._envelope(), **event.extra.get(NAME, {})})

    def _ending(self, choice: Choice) -> JsonObject:
        members = dict(choice.extra.get(NAME, {}))
        last = {"text": "", **_signature_in(members)}
        value = {"content": {"parts": [last], "role": "model"}, **finish_of(choice), "index": choice.index}
        cited = self._citations.get(choice.index)
        return {**value, **({_CITED: {"citations": cited}} if cited and not members else {}), **members}


def body_of(answer: FoldedAnswer, context: AnswerContext) -> JsonObject:
    finished = answer.finished
    body: JsonObject = (
        {} if is_blocked(finished) else {"candidates": [_candidate(answer, one) for one in finished.choices]}
    )
    body["usageMetadata"] = usage_out(finished.usage or Usage())
    return {**body, **envelope_of(answer.started, context), **finished.extra.get(NAME, {})}


def _candidate(answer: FoldedAnswer, choice: Choice) -> JsonObject:
    members = dict(choice.extra.get(NAME, {}))
    parts = [written for part in with_seams(answer.parts_of(choice.index)) for written in parts_out(part)]
    if signature := _signature_in(members):
        parts.append({"text": "", **signature})
    value: JsonObject = {"content": {"parts": parts, "role": "model"}, **finish_of(choice), "index": choice.index}
    texts = [part for part in answer.parts_of(choice.index) if isinstance(part, Text)]
    value |= logprobs_out([entry for text in texts for entry in text.logprobs or ()])
    cited = [one for text in texts for citation in text.citations if (one := citation_out(citation, text.text))]
    return {**value, **({_CITED: {"citations": cited}} if cited and not members else {}), **members}


def envelope_of(started: Started, context: AnswerContext) -> JsonObject:
    """The version is the back end's own name for the model, if it uses this dialect."""
    own = started.extra.get(NAME)
    return {
        "modelVersion": (own is not None and started.model) or context.request.model,
        "responseId": (own is not None and started.id) or context.mint(""),
        **(own or {}),
    }


def parts_out(part: Part) -> list[JsonObject]:
    """A whole part of an answer; empty if this dialect has no form for it, or sends it elsewhere."""
    own = part.extra.get(NAME, {})
    match part:
        case Text() | Refusal():
            return [{"text": part.text, **own}] if part.text and not _is_own_note(part) else []
        case Reasoning():
            proof = signature_of(part)
            if not part.text and not proof:
                return []
            flag = {"thought": True} if part.text or not _is_own(part) else {}
            return [{"text": part.text, **flag, **({SIGNATURE: proof} if proof else {})}]
        case ToolCall():
            return [{"functionCall": {"id": part.id, "name": part.name, "args": arguments_of(part)}, **own}]
        case Opaque():
            return [part.value] if part.dialect == NAME else []
        case Media() | ToolResult():
            return []
        case _:
            assert_never(part)


def signature_of(part: Reasoning) -> str:
    """Its own signature, or a seal for reasoning of another dialect."""
    return part.encrypted or "" if _is_own(part) else sealed_out(part)


def finish_of(choice: Choice) -> JsonObject:
    """The back end's own finish reason if it is one of this dialect and still true."""
    raw = choice.raw_reason
    is_own = raw in REASONS and FINISH[choice.reason] == FINISH[REASONS[raw] or "other"]
    return {"finishReason": raw if is_own else FINISH[choice.reason]}


def is_blocked(finished: Finished) -> bool:
    """The back end gave no candidate, because it blocked the prompt."""
    feedback = finished.extra.get(NAME, {}).get("promptFeedback")
    return isinstance(feedback, dict) and bool(feedback.get("blockReason")) and finished.choices[0].reason == "refused"


def _signature_in(members: JsonObject) -> JsonObject:
    signature = members.pop(SIGNATURE, None)
    return {SIGNATURE: signature} if signature else {}


def _is_own(part: Reasoning) -> bool:
    return NAME in part.extra


def _is_signed(part: Text | Refusal) -> bool:
    return SIGNATURE in part.extra.get(NAME, {})


def _is_own_note(part: Text | Refusal) -> bool:
    """Our text for a finish reason of this dialect."""
    return isinstance(part, Refusal) and NAME in part.extra
