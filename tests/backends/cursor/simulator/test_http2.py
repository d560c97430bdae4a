from __future__ import annotations

import asyncio

import pytest

from tests.backends.cursor.simulator.client import RUN, Client, Link, framed, headers, opening
from tests.backends.cursor.simulator.single_run import QUICK, run_once
from toolwire.backends.cursor.simulator.script import Say, play
from toolwire.backends.cursor.simulator.server import Simulator

pytestmark = pytest.mark.slow  # starts a server


def test_a_reset_by_the_client_ends_its_run_alone() -> None:
    async def main() -> list[str]:
        async with Simulator(settings=QUICK) as simulator, await Link.open(Client(simulator.url)) as link:
            for _ in range(2):
                link.begin(RUN, headers())
                link.send(framed(opening().SerializeToString()))
            link.client.ignored = {"request_context_args"}
            await link.until(lambda: link.client.kinds.count("request_context_args") == 2)
            link.http.reset_stream(link.stream, 8)
            link.writer.write(link.http.data_to_send())
            async with asyncio.timeout(2):
                while len(simulator.journal.open_runs) > 1:
                    await asyncio.sleep(0.01)
            return [run.state for run in simulator.journal.runs]

    assert asyncio.run(main()) == ["open", "gone"]


def test_a_long_text_waits_for_the_window() -> None:
    text = "x" * 300_000
    client, _ = run_once(model=play(Say(text, pieces=1)))
    assert client.text == text


def test_pings_are_answered() -> None:
    async def main() -> bytes:
        async with Simulator(settings=QUICK) as simulator, await Link.open(Client(simulator.url)) as link:
            link.http.ping(b"12345678")
            link.writer.write(link.http.data_to_send())
            received = b""
            async with asyncio.timeout(1):
                while b"12345678" not in received:
                    received += await link.reader.read(1000)
            return received

    assert b"12345678" in asyncio.run(main())


def test_an_unary_method_over_http_2() -> None:
    async def main() -> tuple[int, str]:
        async with Simulator(settings=QUICK) as simulator:
            client = Client(simulator.url)
            path = "/auth/exchange_user_api_key"
            async with await Link.open(client) as link:
                link.begin(path, headers(content_type="application/json", authorization="Bearer nobody"))
                link.half_close()
                return (await link.listen() == "end" and client.status) or 0, client.answer_headers["content-type"]

    assert asyncio.run(main()) == (401, "application/json")


def test_what_is_no_http_2_is_hung_up_on() -> None:
    async def main() -> bool:
        async with Simulator(settings=QUICK) as simulator:
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            writer.write(
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x01\x00\x00\x00\x00\x00\x00x"
            )  # DATA on stream 0
            await reader.read()
            writer.close()
            async with asyncio.timeout(1):
                while simulator.connections:
                    await asyncio.sleep(0.01)
            return True

    assert asyncio.run(main())
