"""Gemini Interactions, for its clients: create, and the paths of stored interactions.

The gateway stores interactions itself and sends every request complete, to a back end of any dialect.
"""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import parse_qs, unquote

from ..base import Endpoint, FrontDialect
from ..shared.answer_out import BodyEncoder
from ..shared.errors import encode_model, encode_models
from .answer_out import InteractionsStreamEncoder, body_of
from .request_in import decode_request
from .shapes import NAME, encode_error

_PATH = re.compile(r"/(?:v1|v1beta|v1alpha|v1beta1)/interactions(?:/([^/]+)(/cancel)?)?")
_LONGEST_QUERY = 10_000  # bytes


def match(path: str, query: bytes) -> Endpoint | None:
    found = _PATH.fullmatch(path.rstrip("/"))
    if found is None:
        return None
    key = parse_qs(query[:_LONGEST_QUERY].decode("utf-8", "replace")).get("key", [""])[-1] if query else ""
    name, action = found.groups(default="")
    if not name:
        return Endpoint(task="answer", decode=decode_request, key=key)
    place = ("interactions", unquote(name), *([action[1:]] if action else []))
    return Endpoint(task="state", place=place, key=key)


DIALECT = FrontDialect(
    name=NAME,
    match=match,
    decode_request=decode_request,
    stream_encoder=InteractionsStreamEncoder,
    body_encoder=partial(BodyEncoder, body_of=body_of),
    encode_error=encode_error,
    encode_models=encode_models,
    encode_model=encode_model,
)
