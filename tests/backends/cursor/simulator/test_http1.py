from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import RUN_SSE, _head, _request, framed, headers, opening
from tests.backends.cursor.simulator.single_run import QUICK
from toolwire.backends.cursor.simulator.http1 import HttpExchange
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.wire import agent

pytestmark = pytest.mark.slow  # starts a server


class MemoryExchange(HttpExchange):
    """An exchange in memory."""

    version, method, path = "2", "POST", "/"

    def __init__(self, *pieces: bytes) -> None:
        self.headers = {}
        self.pieces = [*pieces, b""]
        self.written: list[Any] = []

    async def read(self) -> bytes:
        return self.pieces.pop(0)

    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        self.written.append((status, headers, is_last))

    async def write(self, data: bytes) -> None:
        self.written.append(data)

    async def finish(self) -> None:
        self.written.append("end")

    async def cut(self, how: str) -> None:
        self.written.append(how)


def test_a_body_is_all_pieces_up_to_the_end() -> None:
    assert asyncio.run(MemoryExchange(b"a", b"b").body()) == b"ab"


def test_a_whole_answer_says_its_length() -> None:
    exchange = MemoryExchange()
    asyncio.run(exchange.answer_json(200, {"a": 1}))
    assert exchange.written == [
        (200, {"content-type": "application/json", "content-length": "8"}, False),
        b'{"a": 1}',
        "end",
    ]


def test_an_empty_answer_ends_at_once() -> None:
    exchange = MemoryExchange()
    asyncio.run(exchange.answer(415, "text/plain", b""))
    assert exchange.written == [(415, {"content-type": "text/plain", "content-length": "0"}, True)]


CONFIG = "/aiserver.v1.ServerConfigService/GetServerConfig"
JSON = headers(content_type="application/json")


def talk(*requests: bytes) -> bytes:
    """All that comes back on one connection."""

    async def main() -> bytes:
        async with Simulator(settings=QUICK) as simulator:
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            for request in requests:
                writer.write(request)
                await asyncio.sleep(0.01)
            writer.write_eof()
            answer = await reader.read()
            writer.close()
            return answer

    return asyncio.run(main())


def test_a_connection_serves_one_request_after_the_other() -> None:
    request = _request(CONFIG, JSON, b"{}")
    assert talk(request, request, request).count(b"HTTP/1.1 200") == 3


def test_requests_may_be_sent_before_the_answer() -> None:
    request = _request(CONFIG, JSON, b"{}")
    assert talk(request + request).count(b"HTTP/1.1 200") == 2


def test_a_body_in_chunks_and_in_bytes() -> None:
    head = _request(CONFIG, JSON, b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
    whole = head + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"
    assert talk(whole).startswith(b"HTTP/1.1 200")
    assert talk(*(whole[at : at + 40] for at in range(0, len(whole), 40))).startswith(b"HTTP/1.1 200")


def test_what_is_no_http_is_hung_up_on() -> None:
    assert talk(b"hello\r\n\r\n") == b""
    assert talk(b"PRI * HTTP/1.0\r\n\r\n") == b""


def test_a_client_that_goes_away_ends_its_run() -> None:
    async def main() -> str:
        async with Simulator(settings=QUICK) as simulator:
            _, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            body = framed(agent.BidiRequestId(request_id="r").SerializeToString())
            writer.write(_request(RUN_SSE, headers(x_request_id="r"), body))
            await asyncio.sleep(0.05)
            writer.close()
            async with asyncio.timeout(2):
                while simulator.journal.open_runs or simulator.connections:
                    await asyncio.sleep(0.01)
            return simulator.journal.runs[0].state

    assert asyncio.run(main()) == "gone"


def test_a_464_reaches_a_client_that_is_still_sending() -> None:
    async def main() -> int:
        async with Simulator(settings=QUICK) as simulator:
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            head = _request("/agent.v1.AgentService/Run", headers(), b"")
            writer.write(head.replace(b"content-length: 0", b"transfer-encoding: chunked"))
            first = framed(opening().SerializeToString())
            writer.write(b"%x\r\n%b\r\n" % (len(first), first))
            status, _ = await _head(reader)
            writer.close()
            return status

    assert asyncio.run(main()) == 464
