"""Whether a history keeps the rules of the ledger: one look at each part of every request."""

from __future__ import annotations

from ..types import Message, Opaque, Part, Reasoning, Refusal, Text, ToolCall, ToolResult
from .hosted import halves

_TEXTS = (Text, Refusal)  # as `X | Y` the union would be made anew for each part


def is_settled(messages: tuple[Message, ...], is_run: bool) -> bool:
    """The first fault ends it. Every request pays for this loop, so it is one, and calls nobody where all is plain."""
    calls: list[ToolCall] = []
    called = answered = 0  # so many calls there are, and so many of them, from the first on, have their results
    has_begun = was_answering = is_thinking = has_opaque = False
    for message in messages:
        role = message.role
        if role == "assistant":
            if answered != called and not (is_run and was_answering):
                return False
            was_answering, is_thinking = True, False
            before, text = called, ""
            for part in message.parts:
                if type(part) is ToolCall:
                    calls.append(part)
                    called += 1
                elif called != before:
                    return False
                elif type(part) is Text:
                    text = part.text
                    if not text:
                        return False
                elif type(part) is ToolResult:
                    return False
                else:
                    text, has_opaque = "", has_opaque or type(part) is Opaque
            if called == before and (not text or text.isspace()):
                is_thinking = _is_thinking(message)
                if not (is_run if is_thinking else _is_said(message)):
                    return False
            if not has_begun:
                return False
        elif role == "tool" or role == "user":
            was_answering = False
            for part in message.parts:
                if type(part) is ToolResult:
                    if answered == called or part.call_id != calls[answered].id:
                        return False
                    if is_run and not fits(calls[answered], part):
                        return False
                    answered += 1
                elif answered != called or is_blank(part):
                    return False
                elif type(part) is Opaque:
                    has_opaque, is_thinking = True, False
            has_begun = has_begun or role == "user"
            if is_thinking or not has_begun or not message.parts:
                return False
        elif not message.is_head:
            was_answering = False
            if answered != called or is_thinking or _is_faulty(message.parts, has_begun):
                return False
    if answered != called or is_thinking or not _are_callable(calls):
        return False
    return not (has_opaque and halves(messages))


def is_blank(part: Part) -> bool:
    return isinstance(part, _TEXTS) and (not part.text or part.text.isspace())


def is_mute(part: Part) -> bool:
    """Nobody hears it: a message of such parts alone says nothing."""
    return isinstance(part, Reasoning) or is_blank(part)


def fits(call: ToolCall, result: ToolResult) -> bool:
    """Where results are items, each kind of call has its own; those of typed tools are answered by a function's too."""
    return result.kind == call.kind or (call.kind == "typed" and result.kind == "function")


def _is_thinking(message: Message) -> bool:
    """What the reasoning led to must come next."""
    return bool(message.parts) and isinstance(message.parts[-1], Reasoning)


def _is_said(message: Message) -> bool:
    """Without parts it may say something that is none: a recording, by its id."""
    parts = message.parts
    return any(not is_mute(part) for part in parts) if parts else bool(message.extra)


def _is_faulty(parts: tuple[Part, ...], has_begun: bool) -> bool:
    """An instruction without parts declares tools; before the conversation begins they are as their client wants them."""
    return any(isinstance(part, ToolResult) or (has_begun and is_blank(part)) for part in parts)


def _are_callable(calls: list[ToolCall]) -> bool:
    """Each with an id of its own, and arguments."""
    ids = {call.id for call in calls}
    items = [call.item_id for call in calls if call.item_id]
    if len(ids) != len(calls) or "" in ids or len(set(items)) != len(items):
        return False
    return not [call for call in calls if call.args is None and call.kind != "custom"]
