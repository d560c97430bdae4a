"""A SearXNG instance, played by a server of exact bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from tests.server.harness import HOLD, Upstream, reply
from toolwire.backends.http.transport import Transport
from toolwire.backends.search import SearxngSearch
from toolwire.dialects.shared.web_search import SearchHit
from toolwire.errors import UpstreamError

PATH = "/search?q=two+words+%26+%C3%A9&format=json"


@pytest.fixture
def engine() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


def found(engine: Upstream, body: bytes, status: int = 200, base: str = "/") -> list[SearchHit]:
    engine.on(PATH, [reply(status, body)])

    async def main() -> list[SearchHit]:
        transport = Transport(environ={})
        try:
            return await SearxngSearch(engine.url + base, transport, 2.0).find("two words & é", 2)
        finally:
            await transport.close()

    return asyncio.run(main())


def test_results(engine: Upstream) -> None:
    results = [{"title": str(n), "url": f"https://a.b/{n}", "content": "c", "engine": "x"} for n in range(3)]
    hits = found(engine, json.dumps({"query": "q", "results": ["?", *results]}).encode())
    assert hits == [SearchHit("0", "https://a.b/0", "c"), SearchHit("1", "https://a.b/1", "c")]
    assert engine.received[0].method == "GET"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"results":7}', b'{"results":'])
def test_answers_that_are_none(engine: Upstream, body: bytes) -> None:
    with pytest.raises(UpstreamError, match="no list of results"):
        found(engine, body)


def test_refusals(engine: Upstream) -> None:
    with pytest.raises(UpstreamError, match=r"403.*search\.formats") as refused:
        found(engine, b"no", 403)
    assert refused.value.status == 403
    with pytest.raises(UpstreamError, match="status 302"):
        found(engine, b"", 302)


def test_too_large_an_answer(engine: Upstream) -> None:
    with pytest.raises(UpstreamError):
        found(engine, b'{"results":["' + b"x" * (5 << 20))


def test_no_wait_is_unbounded(engine: Upstream) -> None:
    engine.on("/search?q=q&format=json", [HOLD])

    async def main() -> None:
        transport = Transport(environ={})
        search = SearxngSearch(engine.url, transport, 0.05)
        with pytest.raises(UpstreamError):
            await search.find("q", 1)
        await transport.close()

    asyncio.run(main())
    assert engine.wait_request("/search?q=q&format=json").left.wait(5)
