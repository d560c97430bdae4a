"""Ollama: embeddings. Requests become those of OpenAI, which back ends accept, and their responses become Ollama's."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from ...errors import BadRequest
from ...types import JsonObject, Request
from ...wire.exact_json import encode
from ...wire.fields import body_object, count_or_none, missing, need_name, rest, text_or_none, wrong
from ..base import excerpt, garbage
from .shapes import NAME

_KNOWN = frozenset({"model", "input", "prompt", "dimensions"})


class _Vector(Struct):
    """The numbers are copied as they are written."""

    embedding: Raw
    index: int = 0


class _Count(Struct):
    prompt_tokens: int = 0


class _Response(Struct):
    data: list[_Vector]
    usage: _Count | None = None


_decoder = msgspec.json.Decoder(_Response)


def decode_embed(body: bytes, headers: Mapping[str, str]) -> Request:
    """/api/embed: a text or several."""
    top = body_object(body)
    given = top.get("input")
    if given is None:
        raise missing("input", "a string or an array of strings")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise wrong("input", given, "a string or an array of strings")
    if not texts:
        raise BadRequest("it is empty; expected at least one string.", where="input")
    return _request(top, texts, headers)


def decode_embedding(body: bytes, headers: Mapping[str, str]) -> Request:
    """/api/embeddings, the older path: one text."""
    top = body_object(body)
    prompt = text_or_none(top, "prompt")
    if not prompt:
        raise missing("prompt", "a string")
    return _request(top, [prompt], headers)


def embed_body(body: bytes, request: Request) -> bytes:
    response = _decoded(body)
    vectors = b",".join(bytes(row.embedding) for row in response.data)
    count = response.usage.prompt_tokens if response.usage is not None else 0
    return b'{"model":%b,"embeddings":[%b],"prompt_eval_count":%d}' % (encode(request.model), vectors, count)


def embedding_body(body: bytes, request: Request) -> bytes:
    return b'{"embedding":' + bytes(_decoded(body).data[0].embedding) + b"}"


def _request(top: JsonObject, texts: list[str], headers: Mapping[str, str]) -> Request:
    model = need_name(top, "model", "")
    sent: JsonObject = {"model": model, "input": texts, "encoding_format": "float"}
    if dimensions := count_or_none(top, "dimensions"):
        sent["dimensions"] = dimensions
    return Request(
        model=model,
        messages=(),
        extra=rest(top, _KNOWN, NAME),
        origin=NAME,
        source=top,
        wire=encode(sent),
        headers=dict(headers),
    )


def _decoded(body: bytes) -> _Response:
    """With its vectors in the order of their texts. Raises UpstreamError."""
    try:
        response = _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        response = _Response([])
    if not response.data or not all(bytes(row.embedding).startswith(b"[") for row in response.data):
        raise garbage(f"the back end sent {excerpt(body)} where embeddings were expected.")
    response.data.sort(key=lambda row: row.index)
    return response
