"""Errors and model lists in the form that two of the dialects share, and decoding of errors in any form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...errors import GatewayError, UpstreamError
from ...types import JsonObject
from ...wire.exact_json import BadJson, decode, encode
from ..base import ModelLine, excerpt

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_POLICY = re.compile(
    r"credential is only authorized for use with|third-party (?:apps|tools|clients) (?:now )?(?:draw|are not|can(?:no|')t)",
    re.IGNORECASE,
)
_READ = 2000  # characters of an error message that are searched
# OpenRouter, LM Studio and others; vLLM and SGLang; Groq; Anthropic; Mistral.
_CONTEXT = ("context_length", "max_model_len", "context_window", "max_input_tokens", "max_context_length")
_LLAMA_CONTEXT = (
    "n_ctx",
    "n_ctx_train",
)  # in "meta" of llama.cpp; what the server uses, then what the model was trained with
_LARGEST_CONTEXT = 1_000_000_000
_OVERFLOW = ("context_length_exceeded", "maximum context length", "context window", "prompt is too long")


def error_type(error: GatewayError) -> str:
    """The "type" member: by status, as the API has it."""
    given = error.details.get("type")
    if isinstance(given, str) and given:
        return given
    return _TYPES.get(error.status) or ("invalid_request_error" if error.status < 500 else "server_error")


def error_object(error: GatewayError) -> JsonObject:
    code = error.details.get("code")
    return {
        "message": error.sentence(),
        "type": error_type(error),
        "param": error.where or _text(error, "param"),
        "code": code if isinstance(code, str) else error.code,
    }


def encode_error(error: GatewayError, request_id: str) -> bytes:
    return encode({"error": error_object(error)})


def decode_error(status: int, body: bytes, headers: Mapping[str, str]) -> UpstreamError:
    """The back end's own message, whatever object contains it."""
    try:
        value = decode(body)
    except BadJson:
        value = None
    return error_from(status, value, body, headers)


def error_from(status: int, value: object, body: bytes, headers: Mapping[str, str]) -> UpstreamError:
    details = error_details(value)
    message = details.get("message")
    if not isinstance(message, str) or not message:
        message = (
            f"the back end answered {status} with {excerpt(body)}." if body else f"the back end answered {status}."
        )
    if _POLICY.search(message[:_READ]):
        return _against_policy(message, headers, details)
    return UpstreamError(
        message, status=status, code=error_code(status, details, message), headers=headers, details=details
    )


def _against_policy(message: str, headers: Mapping[str, str], details: JsonObject) -> UpstreamError:
    """The provider accepts this credential only from its own programs. Its message stays, with a hint what to do (H169)."""
    return UpstreamError(
        message,
        status=403,
        code="credential_refused",
        hint="The provider accepts this subscription only from its own programs, by its policy; "
        "give this back end an API key, or use another one.",
        headers=headers,
        details=details | {"type": "permission_error"},
    )


def error_details(value: object) -> JsonObject:
    """The error object inside: {"error": {...}}, {"error": "text"}, {"message": ...}, {"detail": ...}."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return {}
    inner = value.get("error")
    if isinstance(inner, dict):
        return inner
    if isinstance(inner, str):
        return {"message": inner}
    for key in ("message", "detail"):
        if value.get(key):
            return {**value, "message": value[key] if isinstance(value[key], str) else encode(value[key]).decode()}
    return {}


def error_code(status: int, details: JsonObject, message: str) -> str:
    code = details.get("code")
    if any(mark in message or mark == code for mark in _OVERFLOW):
        return "context_length_exceeded"
    return {401: "authentication_failed", 404: "not_found", 429: "rate_limited", 529: "overloaded"}.get(
        status, "upstream_error"
    )


def encode_model(model: ModelLine) -> bytes:
    return encode(_line(model))


def encode_models(models: Sequence[ModelLine]) -> bytes:
    return encode({"object": "list", "data": [_line(model) for model in models]})


def decode_models(body: bytes) -> list[ModelLine]:
    """Lenient: a list under "data" or "models" of objects with an id or a name."""
    try:
        value = decode(body)
    except BadJson:
        return []
    rows = (value.get("data") or value.get("models") or []) if isinstance(value, dict) else value
    lines = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(name := row.get("id") or row.get("name"), str):
            created = row.get("created")
            owner, title = row.get("owned_by"), row.get("display_name")
            lines.append(
                ModelLine(
                    id=name,
                    owner=owner if isinstance(owner, str) else "",
                    created=created if isinstance(created, int) else 0,
                    title=title if isinstance(title, str) else "",
                    context=context_in(row),
                )
            )
    return lines


def context_in(row: JsonObject) -> int:
    """The context window in one entry of a model list, under the names that servers use; 0 if there is none."""
    meta = row.get("meta")
    for members, names in ((row, _CONTEXT), (meta if isinstance(meta, dict) else {}, _LLAMA_CONTEXT)):
        for name in names:
            value = members.get(name)
            if type(value) is int and 0 < value <= _LARGEST_CONTEXT:
                return value
    return 0


def _line(model: ModelLine) -> JsonObject:
    line = {"id": model.id, "object": "model", "created": model.created, "owned_by": model.owner or "toolwire"}
    return {**line, "context_length": model.context} if model.context else line


def _text(error: GatewayError, key: str) -> str | None:
    value = error.details.get(key)
    return value if isinstance(value, str) else None
