"""The first look at a request body, the same in every dialect: is it a JSON object at all?"""

from __future__ import annotations

from ..errors import BadRequest
from ..types import JsonObject
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
