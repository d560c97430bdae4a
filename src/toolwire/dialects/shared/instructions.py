"""How requests begin, the same in every dialect: a body that must be a JSON object, and instructions before all else."""

from __future__ import annotations

from msgspec.structs import replace

from ...errors import BadRequest
from ...types import JsonObject, Loss, Message, Part, Text
from ...wire.exact_json import BadJson, decode
from ...wire.fields import kind_of

_INSTRUCTIONS = ("system", "developer")


def body_object(body: bytes) -> JsonObject:
    if not body.strip():
        raise BadRequest("the body is empty; expected a JSON object.", code="invalid_json")
    try:
        value = decode(body)
    except BadJson as fault:
        raise BadRequest(f"the body is not valid JSON: {fault}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {kind_of(value)}; expected a JSON object.", code="invalid_json")
    return value


def split_head(messages: tuple[Message, ...]) -> tuple[list[Message], list[Message]]:
    """Instructions that stand before all else, for dialects with a member of their own for them; and the rest."""
    count = 0
    while count < len(messages) and _is_instruction(messages[count]):
        count += 1
    return list(messages[:count]), list(messages[count:])


def with_listener(messages: tuple[Message, ...], losses: list[Loss]) -> tuple[Message, ...]:
    """Where nobody has spoken yet the last instruction is told as the user's: a conversation needs one message of a user."""
    if not messages or not all(map(_is_instruction, messages)):
        return messages
    losses.append(Loss("role.system", "messages", "the last instruction is told as the user's message"))
    return (*messages[:-1], replace(messages[-1], role="user", is_head=False, source=None))


def with_one_head(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The instructions that stand before all else as one message, for those who take no second (H112)."""
    if not all(map(_is_instruction, messages[:2])):
        return messages
    head, rest = split_head(messages)
    parts: tuple[Part, ...] = tuple(part for message in head for part in message.parts)
    texts = [part.text for part in parts if isinstance(part, Text)]
    if len(texts) == len(parts):
        parts = (Text(text="\n\n".join(texts)),)
    return (head[0].with_parts(parts), *rest) if len(head) > 1 else messages


def as_note(text: str, where: str, losses: list[Loss]) -> str:
    """An instruction that may not stand where it does, as a note for a user message in its place (H112, H141)."""
    losses.append(Loss("role.system", where, "written as a note in a user message"))
    return labelled(text)


def labelled(instruction: str) -> str:
    return f"<system>\n{instruction}\n</system>"


def _is_instruction(message: Message) -> bool:
    return message.role in _INSTRUCTIONS
