"""Gemini: errors and model lists, both ways."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import GatewayError, UpstreamError
from ...types import JsonObject
from ...wire.exact_json import BadJson, decode, encode
from ...wire.fields import text_in
from ..base import ModelLine
from ..shared.errors import error_details, error_from

_BY_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_TOO_LONG = "exceeds the maximum number of tokens"
_DELAY = re.compile(r"(\d{1,9})(?:\.\d{1,9})?s")


def error_object(error: GatewayError) -> JsonObject:
    given, message = error.details.get("status"), error.sentence()
    if error.code == "context_length_exceeded" and _TOO_LONG not in message:
        message = f"The input token count {_TOO_LONG} allowed: {message}"  # clients of this API know this text (H146)
    is_own = isinstance(given, str) and _STATUS.get(given) == error.status
    status = given if is_own else _BY_STATUS.get(error.status) or _by_class(error.status)
    value: JsonObject = {"code": error.status, "message": message, "status": status}
    if isinstance(details := error.details.get("details"), list):
        value["details"] = details
    return value


def encode_error(error: GatewayError, request_id: str) -> bytes:
    return encode({"error": error_object(error)})


def decode_error(status: int, body: bytes, headers: Mapping[str, str]) -> UpstreamError:
    try:
        value = decode(body)
    except BadJson:
        value = None
    return _error(status, value, body, headers)


def stream_error(value: Any, body: bytes) -> UpstreamError:
    """An error in a stream contains the status that it would have had."""
    details = error_details(value)
    code = details.get("code")
    known = code if type(code) is int and 400 <= code < 600 else _STATUS.get(text_in(details, "status"), 502)
    return _error(known, value, body, {})


def encode_model(model: ModelLine) -> bytes:
    return encode(_line(model))


def encode_models(models: Sequence[ModelLine]) -> bytes:
    return encode({"models": [_line(model) for model in models]})


def decode_models(body: bytes) -> list[ModelLine]:
    """Those that answer; the list has others too, for embeddings and the like."""
    try:
        value = decode(body)
    except BadJson:
        return []
    rows = value.get("models") if isinstance(value, dict) else None
    lines = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, dict) or not (name := text_in(row, "name")):
            continue
        verbs = row.get("supportedGenerationMethods")
        if not isinstance(verbs, list) or "generateContent" in verbs:
            title = text_in(row, "displayName")
            limit = row.get("inputTokenLimit")
            context = limit if type(limit) is int and limit > 0 else 0
            lines.append(ModelLine(id=name.removeprefix("models/"), owner="google", title=title, context=context))
    return lines


def _error(status: int, value: Any, body: bytes, headers: Mapping[str, str]) -> UpstreamError:
    error = error_from(status, value, body, headers)
    if _TOO_LONG in error.message:
        error.code = "context_length_exceeded"
    listed = error.details.get("details")
    for detail in listed if isinstance(listed, list) else ():
        if not isinstance(detail, dict):
            continue
        if detail.get("reason") == "API_KEY_INVALID":  # sent as an invalid argument
            error.status, error.code = 401, "authentication_failed"
        delay = _DELAY.fullmatch(text_in(detail, "retryDelay"))
        if delay is not None:
            error.headers.setdefault("retry-after", str(int(delay[1]) + 1))
    return error


def _by_class(status: int) -> str:
    return "INVALID_ARGUMENT" if status < 500 else "INTERNAL"


def _line(model: ModelLine) -> JsonObject:
    return {
        "name": f"models/{model.id}",
        "version": "001",
        "displayName": model.title or model.id,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        **({"inputTokenLimit": model.context} if model.context else {}),
    }
