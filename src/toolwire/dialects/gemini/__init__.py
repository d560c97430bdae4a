"""Gemini (generateContent), both directions.

Paths contain the model and the method; query strings the API key and the form of a stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qs

from ...profiles import Profile
from ...wire.exact_json import encode
from ..base import Dialect, Endpoint, bearer, count_member, forwarded_headers
from ..shared.answer_in import BodyDecoder
from ..shared.answer_out import BodyEncoder
from .answer_in import GeminiStreamDecoder, body_events
from .answer_out import GeminiStreamEncoder, body_of
from .errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .request_in import decode_asked, decode_count_request, decode_request
from .request_out import encode_request, path_of
from .shapes import COUNT, GENERATE, NAME, STREAM, plain_name

_OAUTH = "ya29."  # prefix of the provider's own tokens; keys never begin so
_LONGEST_QUERY = 10_000  # bytes
# Clients of the provider's cloud name their project and place before the model.
_PATH = re.compile(
    r"/(v1|v1beta|v1alpha|v1beta1)/(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?((?:tunedM|m)odels)(?:/(.+))?"
)


class Asked(NamedTuple):
    """What a path requests: verb is "" if it only names a model, and model is "" if it names none."""

    model: str
    verb: str = ""


def match(path: str, query: bytes) -> Endpoint | None:
    """None for a path that other dialects have too, or none. The name of a model may contain slashes and colons.

    A client that requests a stream but not server-sent events gets an array of chunks: one, once the answer is complete.
    """
    asked = asked_in(path)
    if asked is None:
        return None
    members = parse_qs(query[:_LONGEST_QUERY].decode("utf-8", "replace"))
    key, is_sse = members.get("key", [""])[-1], "sse" in members.get("alt", ())
    if not asked.verb:
        return Endpoint(task="model" if asked.model else "models", model=asked.model, key=key)
    if asked.verb == COUNT:
        return Endpoint(task="count", decode=partial(decode_count_request, model=asked.model), key=key)
    is_stream = asked.verb == STREAM
    decode = partial(decode_asked, model=asked.model, is_stream=is_stream and is_sse)
    return Endpoint(task="answer", decode=decode, key=key, is_array=is_stream and not is_sse)


def asked_in(path: str) -> Asked | None:
    """None for a path that is not specific to this dialect. The name of a model may contain slashes and colons."""
    found = _PATH.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    version, folder, rest = found.groups(default="")
    name, colon, verb = rest.rpartition(":")
    if colon and name and verb in (GENERATE, STREAM, COUNT):
        return Asked(plain_name(f"{folder}/{name}"), verb)
    return None if version == "v1" else Asked(plain_name(f"{folder}/{rest}") if rest else "")


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """Tokens of persons and services are sent as a bearer, keys in a header of their own."""
    is_bearer = profile.key_header == "authorization" or key.startswith(_OAUTH)
    return forwarded_headers(given) | (bearer(key) if is_bearer else {"x-goog-api-key": key} if key else {})


DIALECT = Dialect(
    name=NAME,
    path="/v1beta/models",
    models_path="/v1beta/models?pageSize=1000",
    count_path="/v1beta/models/{model}:countTokens",
    match=match,
    claims=lambda given: "x-goog-api-key" in given or "x-goog-api-client" in given,
    # Blank lines: the official Python library (google-genai 1.0 to 3.1) parses comments as JSON.
    heartbeat=b"\n\n",
    decode_request=decode_request,
    encode_request=encode_request,
    path_of_request=path_of,
    headers=headers,
    stream_decoder=GeminiStreamDecoder,
    body_decoder=partial(BodyDecoder, events_of=body_events, stream=GeminiStreamDecoder),
    stream_encoder=GeminiStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    decode_error=decode_error,
    encode_error=encode_error,
    encode_count=lambda tokens: encode({"totalTokens": tokens}),
    decode_count=lambda body: count_member(body, "totalTokens"),
    encode_models=encode_models,
    encode_model=encode_model,
    decode_models=decode_models,
)

__all__ = [
    "COUNT",
    "DIALECT",
    "NAME",
    "STREAM",
    "Asked",
    "asked_in",
    "decode_asked",
    "decode_count_request",
    "encode_request",
]
