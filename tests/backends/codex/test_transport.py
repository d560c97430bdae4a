"""What every channel does alike, whether it leads to a child process or to a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.backends.codex.listening import listening
from tests.backends.codex.starting import environment, fake
from toolwire.backends.codex.transport.process import start
from toolwire.backends.codex.transport.websocket import connect
from toolwire.backends.codex.worker import AppServerChannel
from toolwire.backends.sessions import SessionLost

pytestmark = pytest.mark.slow

_LONG = "é" * 50_000


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[AppServerChannel]:
    if kind == "process":
        yield await start(fake(), folder, environment()[0])
        return
    async with listening() as listener:
        yield await connect(listener.address)


async def _line(channel: AppServerChannel) -> dict[str, object]:
    data = b""
    while not data.endswith(b"\n"):
        data += await channel.receive()
    found: dict[str, object] = json.loads(data)
    return found


async def _flooded(channel: AppServerChannel) -> None:
    """More than fits into any pipe, so that it must be heard of when nobody reads."""
    for _ in range(3):
        await channel.send(b"{}\n" * 100_000)


@pytest.mark.parametrize("kind", ["process", "websocket"])
def test_long_lines_pass_both_ways(kind: str, tmp_path: Path) -> None:
    async def main() -> str:
        async with opened(kind, tmp_path) as channel:
            message = {"id": 1, "method": _LONG, "params": {}}
            await channel.send(json.dumps(message).encode() + b"\n")
            answer = await _line(channel)
            await channel.close()
        return json.dumps(answer, ensure_ascii=False)

    assert _LONG in asyncio.run(main())


@pytest.mark.parametrize("kind", ["process", "websocket"])
def test_after_the_end_nothing_is_read_or_written(kind: str, tmp_path: Path) -> None:
    async def main() -> str:
        async with opened(kind, tmp_path) as channel:
            await channel.close()
            await channel.close()
            with pytest.raises(SessionLost) as caught:
                await _flooded(channel)
            assert await channel.receive() == b""
        return str(caught.value)

    assert asyncio.run(main()).endswith(".")
