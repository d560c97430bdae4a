"""Anthropic Messages, both directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...types import Request
from ..base import BodyDecoder, Endpoint, decode_count, encode_count, no_match
from .answer_in import StreamDecoder, body_events
from .answer_out import encoder
from .credentials import headers
from .errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .request_in import decode_count_request, decode_request
from .request_out import PATH, encode_request
from .shapes import NAME


def stream_decoder(request: Request) -> StreamDecoder:
    return StreamDecoder(request)


def body_decoder(request: Request) -> BodyDecoder:
    return BodyDecoder(body_events, partial(StreamDecoder, request))


def path_of(request: Request) -> str:
    return PATH


def claims(given: Mapping[str, str]) -> bool:
    """Whether the headers are those of a client of this dialect, where the path does not tell."""
    return "anthropic-version" in given or ("x-api-key" in given and "authorization" not in given)


def heartbeat() -> bytes:
    return b'event: ping\ndata: {"type": "ping"}\n\n'


name = NAME
routes = {
    "/messages": Endpoint(task="answer", decode=decode_request),
    "/messages/count_tokens": Endpoint(task="count", decode=decode_count_request),
}
match = no_match
path = PATH
models_path = "/v1/models?limit=1000"
count_path = "/v1/messages/count_tokens"

__all__ = [
    "body_decoder",
    "claims",
    "count_path",
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
