"""Gemini (generateContent), both directions.

Paths contain the model and the method; query strings the API key and the form of a stream.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from urllib.parse import parse_qs

from ...profiles import Profile
from ...wire.exact_json import encode
from ..base import FORWARDED, Dialect, Endpoint, bearer, count_member, forwarded_headers
from ..shared.answer_in import BodyDecoder
from ..shared.answer_out import BodyEncoder
from .answer_in import GeminiStreamDecoder, body_events
from .answer_out import GeminiStreamEncoder, body_of
from .errors import decode_error, decode_models, encode_error, encode_model, encode_models
from .request_in import decode_call, decode_count_request, decode_request
from .request_out import encode_request, path_of
from .shapes import COUNT, GENERATE, NAME, STREAM, plain_name

_OAUTH = "ya29."  # prefix of the provider's own tokens; keys never begin so
_LONGEST_QUERY = 10_000  # bytes
# Clients of the provider's cloud name their project and place before the model.
_PATH = re.compile(
    r"/(v1|v1beta|v1alpha|v1beta1)/(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?((?:tunedM|m)odels)(?:/(.+))?"
)


def match(path: str, query: bytes) -> Endpoint | None:
    """None for a path that is not specific to this dialect. The name of a model may contain slashes and colons.

    A client that requests a stream but not server-sent events gets an array of chunks: one, once the answer is complete.
    """
    found = _PATH.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    version, folder, rest = found.groups(default="")
    name, _, method = rest.rpartition(":")
    is_call = bool(name) and method in (GENERATE, STREAM, COUNT)
    if version == "v1" and not is_call:
        return None
    members = parse_qs(query[:_LONGEST_QUERY].decode("utf-8", "replace"))
    key, is_sse = members.get("key", [""])[-1], "sse" in members.get("alt", ())
    if not is_call:
        model = plain_name(f"{folder}/{rest}") if rest else ""
        return Endpoint(task="model" if model else "models", model=model, key=key)
    model = plain_name(f"{folder}/{name}")
    if method == COUNT:
        return Endpoint(task="count", decode=partial(decode_count_request, model=model), key=key)
    is_stream = method == STREAM
    decode = partial(decode_call, model=model, is_stream=is_stream and is_sse)
    return Endpoint(task="answer", decode=decode, key=key, is_array=is_stream and not is_sse)


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """Tokens of persons and services are sent as a bearer, keys in a header of their own."""
    is_bearer = profile.key_header == "authorization" or key.startswith(_OAUTH)
    return forwarded_headers(given, FORWARDED) | (bearer(key) if is_bearer else {"x-goog-api-key": key} if key else {})


def add_member(wire: bytes, report: bytes) -> bytes:
    """In the last chunk, or in a chunk of its own if that was sent. Comments are errors for @google/genai 2.32, unknown members are not."""
    if wire.endswith(b"}\n\n"):
        return wire[:-3] + b',"toolwire":' + report + b"}\n\n"
    return wire + b'data: {"toolwire":' + report + b"}\n\n"


DIALECT = Dialect(
    name=NAME,
    path="/v1beta/models",
    models_path="/v1beta/models?pageSize=1000",
    count_path="/v1beta/models/{model}:countTokens",
    match=match,
    claims=lambda given: "x-goog-api-key" in given or "x-goog-api-client" in given,
    # Blank lines: the official Python library (google-genai 1.0 to 3.1) parses comments as JSON.
    heartbeat=b"\n\n",
    add_report=add_member,
    decode_request=decode_request,
    encode_request=encode_request,
    path_of_request=path_of,
    headers=headers,
    forwarded=FORWARDED,
    stream_decoder=GeminiStreamDecoder,
    body_decoder=partial(BodyDecoder, events_of=body_events, stream=GeminiStreamDecoder, has_arrays=True),
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
