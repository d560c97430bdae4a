"""Ollama: embeddings as requests and responses of OpenAI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.ollama.embeddings import decode_embed, decode_embedding, embed_body, embedding_body
from toolwire.errors import BadRequest, UpstreamError
from toolwire.types import Request


def embed(**members: Any) -> Request:
    return decode_embed(json.dumps({"model": "m", **members}).encode(), {})


def test_texts_and_dimensions() -> None:
    request = embed(input=["a", "b"], dimensions=8, truncate=False)
    assert json.loads(request.wire) == {
        "model": "m", "input": ["a", "b"], "encoding_format": "float", "dimensions": 8,
    }  # fmt: skip
    assert request.extra == {"ollama": {"truncate": False}}
    assert json.loads(embed(input="a").wire)["input"] == ["a"]
    old = decode_embedding(b'{"model":"m","prompt":"a"}', {})
    assert json.loads(old.wire)["input"] == ["a"]


def test_numbers_keep_their_digits_and_texts_their_order() -> None:
    body = (
        b'{"data":[{"index":1,"embedding":[2.50]},{"index":0,"embedding":[1.10, -3e-5]}],"usage":{"prompt_tokens":4}}'
    )
    request = embed(input=["a", "b"])
    expected = b'{"model":"m","embeddings":[[1.10, -3e-5],[2.50]],"prompt_eval_count":4}'
    assert embed_body(body, request) == expected
    assert embedding_body(body, request) == b'{"embedding":[1.10, -3e-5]}'


@pytest.mark.parametrize("body", [b"", b"{}", b'{"data":[]}', b'{"data":[{"embedding":"AAAA"}]}', b'{"data":[1]}'])
def test_a_response_without_numbers_is_an_error(body: bytes) -> None:
    with pytest.raises(UpstreamError):
        embed_body(body, embed(input="a"))


@pytest.mark.parametrize("members", [{}, {"input": []}, {"input": 1}, {"input": [1]}, {"input": "a", "model": ""}])
def test_wrong_requests(members: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        embed(**members)
    with pytest.raises(BadRequest):
        decode_embedding(b'{"model":"m"}', {})
