"""Anthropic Messages, both directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...profiles import Profile
from ...types import Request
from ..base import BodyDecoder, bearer
from ..passing import passed_on
from .answer_in import StreamDecoder, body_events
from .answer_out import encoder
from .faults import decode_error, decode_models, encode_error, encode_model, encode_models
from .request_in import decode_count, decode_request
from .request_out import PATH, encode_request
from .shapes import NAME


def stream_decoder(request: Request) -> StreamDecoder:
    return StreamDecoder(request)


def body_decoder(request: Request) -> BodyDecoder:
    return BodyDecoder(body_events, partial(StreamDecoder, request))


def path_of(request: Request) -> str:
    return PATH


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """The client's own version counts; from some version on the key travels as a Bearer."""
    passed = passed_on(given, "anthropic-version", "anthropic-beta")
    version = passed.setdefault("anthropic-version", profile.api_version or "2023-06-01")
    is_bearer = profile.key_header == "authorization" or version >= (profile.bearer_from_version or "9")
    return passed | (bearer(key) if is_bearer else {"x-api-key": key} if key else {})


def claims(given: Mapping[str, str]) -> bool:
    """Whether the headers are those of a client of this dialect, where the path does not tell."""
    return "anthropic-version" in given or ("x-api-key" in given and "authorization" not in given)


def heartbeat() -> bytes:
    return b'event: ping\ndata: {"type": "ping"}\n\n'


name = NAME
path = PATH
models_path = "/v1/models?limit=1000"
count_path = "/v1/messages/count_tokens"

__all__ = [
    "body_decoder",
    "claims",
    "count_path",
    "decode_count",
    "decode_error",
    "decode_models",
    "decode_request",
    "encode_error",
    "encode_model",
    "encode_models",
    "encode_request",
    "encoder",
    "headers",
    "heartbeat",
    "models_path",
    "name",
    "path",
    "path_of",
    "stream_decoder",
]
