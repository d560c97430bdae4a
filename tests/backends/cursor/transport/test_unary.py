from __future__ import annotations

import asyncio

import pytest

from tests.backends.cursor.plain import Asked, Plain
from tests.backends.cursor.serving import attempt
from toolwire.backends.cursor.transport.target import USABLE_MODELS
from toolwire.backends.cursor.transport.unary import unary, unwrapped
from toolwire.backends.http.transport import Transport
from toolwire.errors import UpstreamError
from toolwire.wire.connect import Fault, end, frame

pytestmark = pytest.mark.slow

MODELS = b"\x0a\x04\x0a\x02m1"


def call(body: bytes, status: int = 200, kind: str = "application/proto") -> tuple[bytes, Asked]:
    async def answering(asked: Asked) -> None:
        asked.answer(body, status, kind)

    async def main() -> tuple[bytes, Asked]:
        async with Plain(answering) as server:
            transport = Transport(environ={})
            try:
                return await unary(transport, server.target, attempt(), USABLE_MODELS), server.asked[0]
            finally:
                await transport.close()

    return asyncio.run(main())


@pytest.mark.parametrize("body", [MODELS, frame(MODELS), frame(MODELS) + end(), frame(MODELS, is_zipped=True) + end()])
def test_an_answer_may_be_bare_or_in_an_envelope(body: bytes) -> None:
    message, asked = call(body)
    assert message == MODELS
    assert asked.path == "/agent.v1.AgentService/GetUsableModels"
    assert asked.headers["content-type"] == "application/proto"
    assert asked.body == b""


@pytest.mark.parametrize("body", [b"", frame(b""), end()])
def test_an_empty_answer_is_an_empty_message(body: bytes) -> None:
    assert call(body)[0] == b""


def test_an_error_in_an_envelope_is_that_error() -> None:
    with pytest.raises(UpstreamError) as caught:
        unwrapped(end(Fault("unauthenticated", "no")))
    assert caught.value.status == 401


@pytest.mark.parametrize("body", [b"\x00\x00", b"\x00\xff\xff\xff\xff", b"\x03\x00\x00\x00\x01x"])
def test_a_broken_envelope_is_an_upstream_error(body: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        unwrapped(body)
    assert caught.value.status in (502, 503)


@pytest.mark.parametrize(("status", "told"), [(401, 401), (415, 502), (500, 500), (429, 429)])
def test_a_status_becomes_its_error(status: int, told: int) -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b'{"message":"no"}', status, "application/json")
    assert caught.value.status == told


def test_a_page_is_no_answer() -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b"<html>", 200, "text/html")
    assert caught.value.code == "upstream_garbage"


def test_a_long_refusal_is_cut() -> None:
    with pytest.raises(UpstreamError) as caught:
        call(b"x" * 3_000_000, 400, "text/plain")
    assert len(caught.value.sentence()) < 1000
