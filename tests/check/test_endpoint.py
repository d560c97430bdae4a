from __future__ import annotations

import asyncio

import pytest

from tests.check.broken_server import Damage, GoodAnswer, broken_server
from tests.check.damages import short_body, silent_close
from toolwire.backends.http.transport import Transport
from toolwire.check.endpoint import CheckedEndpoint, HttpAttempt
from toolwire.check.questions import WEATHER, ask
from toolwire.config.file import BackendConfig
from toolwire.types import Request

MODEL = "demo/echo-tools"


def attempt(good: str, damage: Damage, request: Request) -> tuple[HttpAttempt, str]:
    """The answer, and how the server treats the connection."""

    async def run(address: str) -> tuple[HttpAttempt, str]:
        transport = Transport()
        config = BackendConfig(name="x", kind="openai-chat", base_url=f"{address}/v1")
        endpoint = CheckedEndpoint(config, MODEL, transport, 5.0)
        try:
            return await endpoint.ask(request), await endpoint.closes_after_answer(request)
        finally:
            await transport.close()

    with broken_server(good, damage) as address:
        return asyncio.run(run(address))


@pytest.mark.slow
def test_a_whole_answer_has_no_deviation(good: str) -> None:
    found, closing = attempt(good, lambda answer: None, ask(MODEL, "Hello."))
    assert (found.status, found.code, found.content_type, closing) == (200, "", "application/json", "")


@pytest.mark.slow
def test_a_body_shorter_than_announced_is_cut(good: str) -> None:
    found, _ = attempt(good, short_body, ask(MODEL, "Hello.", (WEATHER,)))
    assert found.code == "http.cut"


@pytest.mark.slow
def test_a_silent_close_differs_from_an_announced_one(good: str) -> None:
    def announce(answer: GoodAnswer) -> None:
        answer.headers["connection"] = "close"

    assert attempt(good, silent_close, ask(MODEL, "Hello."))[1] == "http.closes_silently"
    assert attempt(good, announce, ask(MODEL, "Hello."))[1] == "http.closes"


@pytest.mark.slow
@pytest.mark.parametrize(("after", "waits"), [("7", [7.0, 7.0]), ("3600", []), ("tomorrow", []), ("nan", [])])
def test_a_busy_server_is_asked_again_when_it_says(good: str, after: str, waits: list[float]) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def run(address: str) -> HttpAttempt:
        transport = Transport()
        config = BackendConfig(name="x", kind="openai-chat", base_url=f"{address}/v1")
        try:
            return await CheckedEndpoint(config, MODEL, transport, 5.0, sleep).ask(ask(MODEL, "hello"))
        finally:
            await transport.close()

    def busy(answer: GoodAnswer) -> None:
        answer.status = 429
        answer.headers["retry-after"] = after

    with broken_server(good, busy) as address:
        assert asyncio.run(run(address)).status == 429
    assert slept == waits
