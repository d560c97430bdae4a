"""OpenAI's embeddings: requests and responses pass with another model name and are otherwise unchanged."""

from __future__ import annotations

from collections.abc import Mapping

from ...types import Request
from ...wire.fields import body_object, missing, need_name
from ..shared.model_field import Renamer
from .shapes import NAME


def decode_embeddings(body: bytes, headers: Mapping[str, str]) -> Request:
    """The back end checks the input: text or tokens, one or several."""
    top = body_object(body)
    if top.get("input") is None:
        raise missing("input", "a string or an array")
    return Request(
        model=need_name(top, "model", ""), messages=(), origin=NAME, source=top, wire=body, headers=dict(headers)
    )


def embeddings_body(body: bytes, request: Request) -> bytes:
    return Renamer(NAME, request.model).body(body)
