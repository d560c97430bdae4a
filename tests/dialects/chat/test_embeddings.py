"""Embeddings of OpenAI: unchanged but for the model's name."""

from __future__ import annotations

import pytest

from toolwire.dialects.chat.embeddings import decode_embeddings, embeddings_body
from toolwire.errors import BadRequest


def test_a_request_keeps_its_bytes() -> None:
    body = b'{ "model": "x/y", "input": [[1, 2]], "encoding_format": "base64" }'
    request = decode_embeddings(body, {"a": "b"})
    assert (request.model, request.wire, request.headers) == ("x/y", body, {"a": "b"})


def test_a_response_has_the_name_that_the_client_sent() -> None:
    request = decode_embeddings(b'{"model":"x/y","input":"a"}', {})
    body = b'{"object":"list","data":[{"embedding":[1.10]}],"model":"y-2026"}'
    assert embeddings_body(body, request) == b'{"object":"list","data":[{"embedding":[1.10]}],"model":"x/y"}'


@pytest.mark.parametrize("body", [b"{}", b'{"model":"m"}', b'{"input":"a"}', b'{"model":"m","input":null}'])
def test_wrong_requests(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_embeddings(body, {})
