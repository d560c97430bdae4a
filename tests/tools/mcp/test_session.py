"""One connection, with a server of the official SDK as a child process."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.tools.mcp.servers import bare, run, text_of, with_sdk
from toolwire.tools.context import Context
from toolwire.tools.mcp import MCP
from toolwire.tools.mcp.session import Session
from toolwire.tools.mcp.target import ServerFault, target_of
from toolwire.types import Media, Text

pytestmark = pytest.mark.slow


def test_a_server_of_the_sdk_gives_every_kind_of_content() -> None:
    async def main() -> None:
        async with MCP(with_sdk(), name="all", timeout=5) as opened:
            tools = {tool.tool.name: tool for tool in await opened.tools()}
            assert len(tools) == 10
            assert {"all__very_odd_name", "all__very_odd_name_2"} < tools.keys()
            assert tools["all__add"].tool.description == "Does add."
            assert not tools["all__add"].changes_things
            kinds = [part.kind if isinstance(part, Media) else "text" for part in (await run(opened, "parts")).parts]
            assert kinds == ["text", "image", "audio", "text", "file", "text"]
            assert (await run(opened, "structured")).parts == (Text(text='{"answer":42}'),)
            raised = await run(opened, "raises")
            assert raised.is_error
            call = asyncio.create_task(run(opened, "slow"))
            await asyncio.sleep(0.2)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await run(opened, "grow")
            assert text_of(await run(opened, "seen")) == "1"
            assert len(await opened.tools()) == 11

    asyncio.run(main())


def test_a_session_cannot_be_restarted() -> None:
    async def main() -> None:
        changes: list[int] = []
        session = Session(target_of(bare(), "x", None, None), lambda: changes.append(1))
        assert not session.is_alive
        await session.start(10)
        assert session.is_alive
        assert len(await session.list_tools(5)) == 10
        await session.call("grow", {}, 5, Context())
        assert changes == [1]
        await session.close()
        assert not session.is_alive
        with pytest.raises(ServerFault) as caught:
            await session.call("echo", {}, 5, Context())
        assert caught.value.is_over

    asyncio.run(main())


def test_closing_before_the_start_is_over_does_not_wait() -> None:
    async def main() -> None:
        session = Session(target_of(bare("mute"), "x", None, None), lambda: None)
        starting = asyncio.create_task(session.start(60))
        await asyncio.sleep(0.1)
        begun = time.monotonic()
        await session.close()
        with pytest.raises(ServerFault, match="did not start"):
            await starting
        assert time.monotonic() - begun < 5

    asyncio.run(main())


def test_sessions_may_be_closed_from_any_task() -> None:
    async def main() -> None:
        sessions = [Session(target_of(bare(), str(number), None, None), lambda: None) for number in range(3)]
        await asyncio.gather(*(session.start(10) for session in sessions))
        # Not in the order they were opened in, and not by the tasks that opened them.
        await asyncio.gather(
            *(asyncio.create_task(session.close()) for session in (sessions[1], sessions[0], sessions[2]))
        )
        assert not any(session.is_alive for session in sessions)

    asyncio.run(main())
