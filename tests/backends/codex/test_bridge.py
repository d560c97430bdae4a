"""The gateway's end of the bridge, over a real socket."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from toolwire.backends.codex import bridge as bridge_module
from toolwire.backends.codex.bridge import LONGEST_NAME, Bridge, Lane
from toolwire.errors import UpstreamError
from toolwire.profiles import CODEX
from toolwire.types import Text, Tool, ToolCall, ToolResult

pytestmark = pytest.mark.slow

LOOK = Tool(name="look", schema={"type": "object"})


class Peer:
    """What Codex says through the program that it has started."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def hear(self) -> Any:
        async with asyncio.timeout(2):
            line = await self.reader.readline()
        return json.loads(line) if line else None

    async def ask(self, method: str, id: int, **params: Any) -> Any:
        self.say(id=id, method=method, params=params)
        return await self.hear()


@asynccontextmanager
async def connected(bridge: Bridge, token: str) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_unix_connection(bridge.path)
    writer.write(token.encode() + b"\n")
    yield Peer(reader, writer)
    writer.transport.abort()


def run(test: Callable[[Bridge], Awaitable[None]], folder: Path | None = None) -> None:
    async def main() -> None:
        bridge = Bridge(folder)
        try:
            await test(bridge)
        finally:
            await bridge.close()
            await bridge.close()
        assert (bridge.lanes, bridge.connections) == ({}, 0)
        assert not os.path.exists(bridge.path)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def given(lane: Lane, text: str, raw: str = "{}") -> None:
    lane.give(ToolCall(id="c", name="look", raw=raw), ToolResult(call_id="c", parts=(Text(text=text),)))


def test_a_call_goes_through_and_its_result_comes_back() -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, lane.token) as peer:
            ready = asyncio.create_task(lane.ready(2))
            assert (await peer.ask("initialize", 0))["result"]["serverInfo"]["name"] == "toolwire"
            assert not ready.done()
            assert [tool["name"] for tool in (await peer.ask("tools/list", 1))["result"]["tools"]] == ["look"]
            await ready
            peer.say(id=2, method="tools/call", params={"name": "look", "arguments": {}})
            assert (await peer.ask("ping", 3))["id"] == 3
            assert lane.waiting == 1
            given(lane, "seen")
            assert (await peer.hear())["result"]["content"] == [{"type": "text", "text": "seen"}]

    run(test)


def test_a_number_that_lost_digits_does_not_part_a_call_from_its_result() -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, lane.token) as peer:
            peer.say(id=1, method="tools/call", params={"name": "look", "arguments": {"at": 1.2345678901234567e29}})
            await peer.ask("ping", 2)
            given(lane, "number", '{"at": 123456789012345678901234567890}')
            given(lane, "other", '{"at": "other"}')
            assert "number" in str(await peer.hear())
            assert "other" in str(await peer.ask("tools/call", 3, name="look", arguments={"at": "other"}))

    run(test)


def test_two_threads_at_once_do_not_meet() -> None:
    async def test(bridge: Bridge) -> None:
        lanes = [await bridge.lane((Tool(name="look"),)), await bridge.lane((Tool(name="look"), Tool(name="more")))]
        async with connected(bridge, lanes[0].token) as first, connected(bridge, lanes[1].token) as second:
            assert len((await first.ask("tools/list", 1))["result"]["tools"]) == 1
            assert len((await second.ask("tools/list", 1))["result"]["tools"]) == 2
            for peer in (first, second):
                peer.say(id=2, method="tools/call", params={"name": "look", "arguments": {}})
                await peer.ask("ping", 3)
            given(lanes[1], "for the second")
            given(lanes[0], "for the first")
            assert "for the first" in str(await first.hear())
            assert "for the second" in str(await second.hear())
            lanes[0].close()
            assert await first.hear() is None
            assert (await second.ask("ping", 4))["id"] == 4

    run(test)


def test_the_socket_is_ours_alone() -> None:
    async def test(bridge: Bridge) -> None:
        await bridge.lane(())
        assert Path(bridge.path).is_relative_to(folder)
        assert stat.S_IMODE(os.stat(bridge.path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(os.path.dirname(bridge.path)).st_mode) == 0o700

    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        folder = Path(short)
        run(test, folder)
        assert list(folder.iterdir()) == []


def test_a_long_path_does_not_stop_it(tmp_path: Path) -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        assert len(os.fsencode(bridge.path)) <= 100
        async with connected(bridge, lane.token) as peer:
            assert (await peer.ask("ping", 1))["id"] == 1

    folder = tmp_path / ("x" * 60) / ("y" * 60)
    folder.mkdir(parents=True)
    run(test, folder)


def test_neither_does_a_long_path_of_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(bridge: Bridge) -> None:
        await bridge.lane((LOOK,))
        assert bridge.path.startswith("/tmp/tw-")

    folder = tmp_path / ("z" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    run(test)


def test_where_no_socket_can_be_the_owner_is_told() -> None:
    async def main() -> None:
        with pytest.raises(UpstreamError, match="no socket for the bridge to Codex could be made") as caught:
            await Bridge(Path("/nowhere")).lane(())
        assert "sentinel" in caught.value.hint

    asyncio.run(main())


@pytest.mark.parametrize("token", ["", "x", "0" * 32, "0" * 100_000, "\xff" * 16])
def test_strangers_are_hung_up_on(token: str) -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, token) as peer:
            peer.say(id=1, method="tools/list", params={"filling": "x" * 40})
            with suppress(ConnectionResetError):
                assert await peer.hear() is None
        assert not lane.is_connected

    run(test)


def test_whoever_says_nothing_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "_INTRODUCTION", 0.05)

    async def test(bridge: Bridge) -> None:
        await bridge.lane((LOOK,))
        reader, writer = await asyncio.open_unix_connection(bridge.path)
        assert await asyncio.wait_for(reader.read(), 2) == b""
        writer.transport.abort()

    run(test)


def test_a_token_is_good_for_one_connection() -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, lane.token) as peer:
            await peer.ask("ping", 1)
            async with connected(bridge, lane.token) as second:
                assert await second.hear() is None
            assert (await peer.ask("ping", 2))["id"] == 2

    run(test)


def test_garbage_is_answered_and_too_long_a_line_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "LONGEST_LINE", 1000)

    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, lane.token) as peer:
            peer.writer.write(b"\x00\xff garbage\n")
            assert (await peer.hear())["error"]["code"] == -32700
            assert (await peer.ask("ping", 1))["id"] == 1
            peer.writer.write(b"x" * 5000)
            with suppress(ConnectionResetError):
                assert await peer.hear() is None
        assert lane.token not in bridge.lanes

    run(test)


def test_a_thread_that_goes_in_the_middle_of_a_call_leaves_nothing() -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        async with connected(bridge, lane.token) as peer:
            peer.say(id=2, method="tools/call", params={"name": "look", "arguments": {}})
            await peer.ask("ping", 3)
        for _ in range(100):
            if not bridge.connections:
                break
            await asyncio.sleep(0.01)
        assert (bridge.connections, bridge.lanes, lane.is_connected) == (0, {}, False)
        given(lane, "too late")

    run(test)


def test_waiting_for_tools_ends_with_a_sentence() -> None:
    async def test(bridge: Bridge) -> None:
        late = await bridge.lane((LOOK,))
        with pytest.raises(UpstreamError, match="has not asked for the tools"):
            await late.ready(0.05)
        gone = await bridge.lane((LOOK,))
        ready = asyncio.create_task(gone.ready(5))
        async with connected(bridge, gone.token) as peer:
            await peer.ask("ping", 1)
        with pytest.raises(UpstreamError, match="has not asked for the tools"):
            await ready

    run(test)


def test_a_thread_is_told_where_to_go_and_how_long_to_wait() -> None:
    async def test(bridge: Bridge) -> None:
        lane = await bridge.lane((LOOK,))
        config = lane.config(360)
        assert config["mcp_servers.gw.args"][2:] == [bridge.path, lane.token]
        assert config["mcp_servers.gw.tool_timeout_sec"] == 360
        assert set(config) == {
            f"mcp_servers.gw.{name}" for name in ("command", "args", "startup_timeout_sec", "tool_timeout_sec")
        }

    run(test)


def test_names_have_room_for_the_prefix() -> None:
    assert CODEX.name_length == LONGEST_NAME


def test_a_socket_that_was_cleaned_away_is_made_again(tmp_path: Path) -> None:
    async def test(bridge: Bridge) -> None:
        old = await bridge.lane((LOOK,))
        async with connected(bridge, old.token) as peer:
            await peer.ask("tools/list", 1)
            shutil.rmtree(os.path.dirname(bridge.path))
            lane = await bridge.lane((LOOK,))
            async with connected(bridge, lane.token) as other:
                assert (await other.ask("ping", 1))["result"] == {}
            assert (await peer.ask("ping", 2))["result"] == {}  # whoever is connected stays so

    run(test, tmp_path)


def test_a_socket_that_cannot_be_made_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwire.backends.codex.bridge._LONGEST_PATH", 1000)
    folder = tmp_path / ("z" * 100)
    folder.mkdir()

    async def main() -> None:
        bridge = Bridge(folder)
        with pytest.raises(UpstreamError, match="no socket for the bridge"):
            await bridge.lane((LOOK,))
        await bridge.close()

    asyncio.run(main())
    assert list(folder.iterdir()) == []
