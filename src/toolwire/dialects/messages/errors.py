"""Anthropic Messages: errors and model lists, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ...errors import GatewayError, UpstreamError
from ...types import JsonObject
from ...wire.exact_json import BadJson, decode, encode
from ..base import ModelLine
from ..shared.errors import decode_models, error_details, error_from

_BY_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_LATEST = 253402300800  # the year 10000: no date can be written from there on
_STATUS = {kind: status for status, kind in _BY_STATUS.items()} | {"api_error": 500}


def error_type(error: GatewayError) -> str:
    """The back end's own type, unless it is a generic one and the status is more specific."""
    given = error.details.get("type")
    is_vague = given in ("invalid_request_error", "api_error") and error.status in _BY_STATUS
    if isinstance(given, str) and given in _STATUS and not is_vague:
        return given
    return _BY_STATUS.get(error.status) or ("invalid_request_error" if error.status < 500 else "api_error")


def error_object(error: GatewayError) -> JsonObject:
    message = error.sentence()
    if error.code == "context_length_exceeded" and "prompt is too long" not in message:
        message = (
            f"prompt is too long: {message}"  # by this text clients know that they must compact the conversation (H146)
        )
    value: JsonObject = {"type": error_type(error), "message": message}
    if isinstance(details := error.details.get("details"), dict):
        value["details"] = details
    return value


def encode_error(error: GatewayError, request_id: str) -> bytes:
    return encode({"type": "error", "error": error_object(error), "request_id": request_id or None})


def decode_error(status: int, body: bytes, headers: Mapping[str, str]) -> UpstreamError:
    try:
        value = decode(body)
    except BadJson:
        value = None
    return error_from(status, value, body, headers)


def stream_error(value: JsonObject, body: bytes) -> UpstreamError:
    """An error event in a stream has no status: its type implies one."""
    details = error_details(value)
    return error_from(_STATUS.get(str(details.get("type")), 502), value, body, {})


def encode_model(model: ModelLine) -> bytes:
    return encode(_line(model))


def encode_models(models: Sequence[ModelLine]) -> bytes:
    lines = [_line(model) for model in models]
    return encode(
        {
            "data": lines,
            "has_more": False,
            "first_id": lines[0]["id"] if lines else None,
            "last_id": lines[-1]["id"] if lines else None,
        }
    )


def _line(model: ModelLine) -> JsonObject:
    seconds = model.created if 0 <= model.created < _LATEST else 0
    created = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = {"type": "model", "id": model.id, "display_name": model.title or model.id, "created_at": created}
    return {**line, "max_input_tokens": model.context} if model.context else line


__all__ = ["decode_error", "decode_models", "encode_error", "encode_model", "encode_models", "stream_error"]
