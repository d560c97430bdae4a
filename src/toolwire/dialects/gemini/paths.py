"""Gemini: paths contain the model and the method, and query strings the API key and the form of a stream."""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qs, quote

from ...types import Request
from ..base import Endpoint
from .request_in import decode_asked, decode_count_request
from .shapes import plain_name

GENERATE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
_FOLDERS = ("models/", "tunedModels/")
_LONGEST_QUERY = 10_000  # bytes
# Clients of the provider's cloud name their project and place before the model.
_PATH = re.compile(
    r"/(v1|v1beta|v1alpha|v1beta1)/(?:(?:projects/[^/]+/locations/[^/]+/)?publishers/[^/]+/)?((?:tunedM|m)odels)(?:/(.+))?"
)


class Asked(NamedTuple):
    """What a path asks for: verb is "" where it only names a model, and model where it names none."""

    model: str
    verb: str = ""


def path_of(request: Request) -> str:
    """Streams are asked for as server-sent events; without that word they would come as one long JSON array."""
    return _path(request.model, f"{STREAM}?alt=sse" if request.stream else GENERATE)


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
    """What a client asks for; None for a path that other dialects have too, or nobody. A name may hold slashes and colons."""
    found = _PATH.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    version, folder, rest = found.groups(default="")
    name, colon, verb = rest.rpartition(":")
    if colon and name and verb in (GENERATE, STREAM, COUNT):
        return Asked(plain_name(f"{folder}/{name}"), verb)
    return None if version == "v1" else Asked(plain_name(f"{folder}/{rest}") if rest else "")


def _path(model: str, verb: str) -> str:
    name = model if model.startswith(_FOLDERS) else f"models/{model}"
    folder, _, own = name.partition("/")
    return f"/v1beta/{folder}/{quote(own, safe='')}:{verb}"
