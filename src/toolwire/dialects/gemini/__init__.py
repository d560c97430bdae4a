"""Gemini (generateContent), both directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...profiles import Profile
from ...types import Request
from ...wire.exact_json import encode
from ..base import BodyDecoder, Endpoint, bearer, count_member
from ..shared.forwarded_headers import passed_on
from .answer_in import StreamDecoder, body_events
from .answer_out import encoder
from .errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .paths import Asked, asked_in, match, path_of
from .request_in import decode_asked, decode_count_request, decode_request
from .request_out import encode_request
from .shapes import NAME

_OAUTH = "ya29."  # what the provider's own tokens begin with; keys never do


def stream_decoder(request: Request) -> StreamDecoder:
    return StreamDecoder(request)


def body_decoder(request: Request) -> BodyDecoder:
    return BodyDecoder(partial(body_events, request), partial(stream_decoder, request))


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """A token of a person or a service travels as a Bearer, a key in a header of its own."""
    is_bearer = profile.key_header == "authorization" or key.startswith(_OAUTH)
    return passed_on(given) | (bearer(key) if is_bearer else {"x-goog-api-key": key} if key else {})


def encode_count(tokens: int) -> bytes:
    return encode({"totalTokens": tokens})


def decode_count(body: bytes) -> int | None:
    return count_member(body, "totalTokens")


def claims(given: Mapping[str, str]) -> bool:
    """Whether the headers are those of a client of this dialect, where the path does not tell."""
    return "x-goog-api-key" in given or "x-goog-api-client" in given


def heartbeat() -> bytes:
    """Blank lines: the official library for Python takes a comment for JSON (google-genai 1.0 to 3.1)."""
    return b"\n\n"


name = NAME
routes: dict[str, Endpoint] = {}
path = "/v1beta/models"
models_path = "/v1beta/models?pageSize=1000"
count_path = "/v1beta/models/{model}:countTokens"

__all__ = [
    "Asked",
    "asked_in",
    "body_decoder",
    "claims",
    "count_path",
    "decode_asked",
    "decode_count",
    "decode_count_request",
    "decode_error",
    "decode_models",
    "decode_request",
    "encode_count",
    "encode_error",
    "encode_model",
    "encode_models",
    "encode_request",
    "encoder",
    "headers",
    "heartbeat",
    "match",
    "models_path",
    "name",
    "path",
    "path_of",
    "routes",
    "stream_decoder",
]
