"""How requests begin, the same in every dialect: a body that must be a JSON object, and instructions before all else."""

from __future__ import annotations

from ..errors import BadRequest
from ..types import JsonObject, Message
from ..wire.exact import BadJson, decode
from ..wire.fields import kind_of


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
    while count < len(messages) and messages[count].role in ("system", "developer"):
        count += 1
    return list(messages[:count]), list(messages[count:])
