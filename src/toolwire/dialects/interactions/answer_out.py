"""Gemini Interactions: canonical events out, as server-sent events or as one interaction.

Each part is a step. Steps are sent one after the other: a part that starts while another one is open waits until that has ended. Events are
numbered, so that a client can resume a stream behind the last one that it has seen.
"""

from __future__ import annotations

from typing import assert_never

from ...events import Event, Failed, Finished, FoldedAnswer, Folder, Noted, PartDelta, PartEnded, PartStarted, Started
from ...types import Choice, Citation, JsonObject, Opaque, Part, Reasoning, Refusal, Text, ToolCall, Usage
from ...wire.exact_json import encode
from ...wire.sse import Frame
from ..base import AnswerContext
from ..shared.answer_out import Seams, with_seams
from ..shared.calls import arguments_of
from ..shared.sealed_reasoning import sealed_out
from .shapes import PREFIX, REQUIRES_ACTION, date_of, error_object, usage_out

DONE = b"event: done\ndata: [DONE]\n\n"


class InteractionsStreamEncoder:
    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._id = id_of(context)
        self._folder = Folder()
        self._number = 0  # of the last event
        self._step = -1  # the index of the last step
        self._is_begun = False
        self._current: int | None = None  # the part that is being written
        self._kind: type = Text  # of that part
        self._waiting: dict[int, list[Event]] = {}
        self._seams = Seams(is_strict=True)  # clients join the texts of adjacent steps
        self._late = False  # the first delta of the current part may need a separator
        self._final: JsonObject | None = None

    def send(self, event: Event) -> bytes:
        if not isinstance(event, PartDelta):
            self._folder.send(event)
        match event:
            case Started() | Noted():
                return self._begin()
            case PartStarted() | PartDelta() | PartEnded():
                return self._begin() + self._part(event)
            case Finished():
                self._final = body_of(self._folder.answer(), self._context, self._id)
                shown = {**self._final, "object": "interaction"}
                return self._begin() + self._event("interaction.completed", interaction=shown) + DONE
            case Failed():
                self._final = failed(self._context, self._id, event)
                begun = self._begin()
                update = self._event("interaction.status_update", interaction_id=self._id, status="failed")
                return begun + update + self._event("error", error=error_object(event.error)) + DONE
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

    def final(self) -> JsonObject | None:
        return self._final

    def _begin(self) -> bytes:
        if self._is_begun:
            return b""
        self._is_begun = True
        interaction = head_of(self._context, self._id) | {"status": "in_progress", "object": "interaction"}
        return self._event("interaction.created", interaction=interaction)

    def _part(self, event: PartStarted | PartDelta | PartEnded) -> bytes:
        if self._current is None and isinstance(event, PartStarted):
            return self._open(event)
        if event.index != self._current:
            self._waiting.setdefault(event.index, []).append(event)
            return b""
        if isinstance(event, PartEnded):
            return self._end(event)
        return self._delta(event) if isinstance(event, PartDelta) else b""

    def _open(self, event: PartStarted) -> bytes:
        self._current, self._kind = event.index, type(event.part)
        self._late = self._seams.begin(event)
        if (step := _empty_step(event.part)) is None:
            return b""
        self._step += 1
        return self._event("step.start", index=self._step, step=step)

    def _delta(self, event: PartDelta) -> bytes:
        text = event.text
        if self._late:
            self._late, text = False, self._seams.before(event) + text
        if self._kind is ToolCall:
            return self._change({"type": "arguments_delta", "arguments": text})
        if self._kind is Reasoning:
            return self._change({"type": "thought_summary", "content": {"type": "text", "text": text}})
        return self._change({"type": "text", "text": text}) if self._kind in (Text, Refusal) else b""

    def _end(self, event: PartEnded) -> bytes:
        part, output = event.part, b""
        self._current = None
        self._seams.end(event)
        if isinstance(part, Text) and (noted := _annotations(part)):
            output += self._change({"type": "text_annotation_delta", "annotations": noted})
        if isinstance(part, Reasoning) and (signature := sealed_out(part)):
            output += self._change({"type": "thought_signature", "signature": signature})
        if isinstance(part, ToolCall) and not part.raw:
            output += self._change({"type": "arguments_delta", "arguments": "{}"})
        if _empty_step(part) is not None:
            output += self._event("step.stop", index=self._step)
        while self._waiting and self._current is None:
            events = self._waiting.pop(next(iter(self._waiting)))
            output += b"".join(
                self._part(one) for one in events if isinstance(one, PartStarted | PartDelta | PartEnded)
            )
        return output

    def _change(self, delta: JsonObject) -> bytes:
        return self._event("step.delta", index=self._step, delta=delta)

    def _event(self, kind: str, **members: object) -> bytes:
        self._number += 1
        value = {"event_type": kind, "event_id": str(self._number), **members}
        return b"event: " + kind.encode() + b"\ndata: " + encode(value) + b"\n\n"


def body_of(answer: FoldedAnswer, context: AnswerContext, answer_id: str = "") -> JsonObject:
    finished = answer.finished
    steps = [step for part in with_seams(answer.parts_of(0)) if (step := step_out(part)) is not None]
    return {
        **head_of(context, answer_id or id_of(context)),
        "status": _status(finished.choices),
        "usage": usage_out(finished.usage or Usage()),
        "steps": steps,
    }


def failed(context: AnswerContext, answer_id: str, event: Failed) -> JsonObject:
    return {**head_of(context, answer_id), "status": "failed", "errors": [error_object(event.error)], "steps": []}


def head_of(context: AnswerContext, answer_id: str) -> JsonObject:
    """What an interaction repeats of its request."""
    source = context.request.source
    repeated = {name: source[name] for name in ("previous_interaction_id", "labels") if source.get(name)}
    now = date_of(context.now)
    return {"id": answer_id, "model": context.request.model, "created": now, "updated": now, **repeated}


def id_of(context: AnswerContext) -> str:
    return context.answer_id or context.mint(PREFIX)


def step_out(part: Part) -> JsonObject | None:
    """A whole part of an answer; None if this dialect has no form for it."""
    match part:
        case Text() | Refusal():
            content: JsonObject = {"type": "text", "text": part.text}
            if isinstance(part, Text) and (noted := _annotations(part)):
                content["annotations"] = noted
            return {"type": "model_output", "content": [content]}
        case Reasoning():
            summary = {"summary": [{"type": "text", "text": part.text}]} if part.text else {}
            signature = sealed_out(part)
            proof = {"signature": signature} if signature else {}
            return {"type": "thought", **summary, **proof}
        case ToolCall():
            return {"type": "function_call", "id": part.id, "name": part.name, "arguments": arguments_of(part)}
        case _:
            return None


def _empty_step(part: Part) -> JsonObject | None:
    """A part as it starts."""
    match part:
        case Text() | Refusal():
            return {"type": "model_output", "content": []}
        case Reasoning():
            return {"type": "thought"}
        case ToolCall():
            return {"type": "function_call", "id": part.id, "name": part.name, "arguments": {}}
        case Opaque() | _:
            return None


def _annotations(part: Text) -> list[JsonObject]:
    return [_citation(citation) for citation in part.citations if citation.url]


def _citation(citation: Citation) -> JsonObject:
    members = {"url": citation.url, "title": citation.title or None}
    members |= {"start_index": citation.start, "end_index": citation.end}  # type: ignore[dict-item] # numbers or none
    return {"type": "url_citation", **{name: value for name, value in members.items() if value is not None}}


def _status(choices: tuple[Choice, ...]) -> str:
    reason = choices[0].reason if choices else "stop"
    return {"tool_calls": REQUIRES_ACTION, "length": "incomplete"}.get(reason, "completed")
