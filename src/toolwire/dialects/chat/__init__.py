"""OpenAI Chat Completions, both directions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...profiles import Profile
from ...types import Request
from ..base import BodyDecoder, Endpoint, bearer, decode_count, encode_count, no_match
from ..shared.error_bodies import decode_error, decode_models, encode_error, encode_model, encode_models
from ..shared.forwarded_headers import passed_on
from .answer_in import StreamDecoder, body_events
from .answer_out import encoder
from .request_in import decode_request
from .request_out import PATH, encode_request
from .shapes import NAME


def stream_decoder(request: Request) -> StreamDecoder:
    return StreamDecoder(request)


def body_decoder(request: Request) -> BodyDecoder:
    return BodyDecoder(partial(body_events, is_single=request.sampling.choices == 1), partial(StreamDecoder, request))


def path_of(request: Request) -> str:
    return PATH


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    return bearer(key) | passed_on(given, "openai-beta")


def claims(given: Mapping[str, str]) -> bool:
    """Whose request it is when the path does not tell: anybody's, who does not look like another dialect."""
    return True


def heartbeat() -> bytes:
    return b": keep-alive\n\n"


name = NAME
routes = {PATH: Endpoint(task="answer", decode=decode_request)}
match = no_match
path = PATH
models_path = "/models"
count_path = ""

__all__ = [
    "body_decoder",
    "claims",
    "count_path",
    "decode_count",
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
