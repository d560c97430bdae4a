"""A server as a child process, beneath the SDK."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCResponse

from toolwire.tools.mcp import stdio
from toolwire.tools.mcp.stdio import StdioTransport, _Lines
from toolwire.tools.mcp.target import target_of

pytestmark = pytest.mark.slow

Test = Callable[[StdioTransport, Any, Any], Awaitable[None]]


def using(program: str, test: Test) -> StdioTransport:
    async def main() -> StdioTransport:
        transport = StdioTransport(target_of([sys.executable, "-S", "-c", program], "x", None, None))
        async with transport as (incoming, outgoing):
            await test(transport, incoming, outgoing)
        return transport

    return asyncio.run(main())


def test_messages_go_both_ways_and_garbage_is_skipped() -> None:
    async def test(transport: StdioTransport, incoming: Any, outgoing: Any) -> None:
        await outgoing.send(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="hello")))
        received = await incoming.receive()
        assert isinstance(received.message, JSONRPCResponse)
        assert received.message.result == {"heard": '{"jsonrpc":"2.0","method":"hello"}'}

    program = """
import json
heard = input()
print("garbage")
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"heard": heard}}), flush=True)
input()
"""
    assert using(program, test).fault == ""


def test_the_end_of_the_server_ends_the_stream() -> None:
    async def test(transport: StdioTransport, incoming: Any, outgoing: Any) -> None:
        with pytest.raises(anyio.EndOfStream):
            await incoming.receive()
        assert transport.ended.is_set()

    ended = using("import sys; sys.stderr.write('e' * 100_000 + 'the end'); sys.exit(4)", test)
    assert ended.exit_code == 4
    assert len(ended.stderr) <= 8192
    assert ended.stderr.endswith("the end")


def test_a_server_that_reads_nothing_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_GRACE", 0.1)

    async def test(transport: StdioTransport, incoming: Any, outgoing: Any) -> None:
        large = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x", params={"x": "y" * 1_000_000}))
        with anyio.move_on_after(0.2) as scope:
            for _ in range(3):
                await outgoing.send(large)
        assert scope.cancelled_caught

    begun = time.monotonic()
    using("import time; time.sleep(60)", test)
    assert time.monotonic() - begun < 5


def test_a_server_that_blocks_on_its_output_can_exit() -> None:
    async def test(transport: StdioTransport, incoming: Any, outgoing: Any) -> None:
        await incoming.aclose()

    program = """
import sys
for number in range(3000):
    print('{"jsonrpc":"2.0","method":"x","params":{"n":%d,"pad":"%s"}}' % (number, "p" * 100))
sys.stdin.read()
sys.exit(5)
"""
    assert using(program, test).exit_code == 5


def test_a_server_that_closes_its_input_ends_the_session() -> None:
    async def test(transport: StdioTransport, incoming: Any, outgoing: Any) -> None:
        message = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x"))
        with anyio.fail_after(5), suppress(anyio.BrokenResourceError):
            while True:
                await outgoing.send(message)
        assert transport.ended.is_set()

    using("import os, time; os.close(0); time.sleep(60)", test)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_they_are_cut(size: int) -> None:
    data = b'one\n\ntwo two\r\n  \nthree"\xff"\nrest'
    lines = _Lines()
    found = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert found == [b"one", b"two two\r", b'three"\xff"']
    assert bytes(lines.rest) == b"rest"


def test_a_long_line_takes_linear_time() -> None:
    lines = _Lines()
    begun = time.process_time()
    for _ in range(2000):
        assert lines.feed(b"x" * 4096) == []
    assert lines.feed(b"\n") == [b"x" * (2000 * 4096)]
    assert time.process_time() - begun < 2
