"""The tools of a server, with one that keeps the rules and one that breaks them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import pytest

from tests.server.harness import wait_until
from tests.tools.mcp.servers import bare, is_running, run, text_of
from toolwire.errors import ConfigError
from toolwire.installation import install_command
from toolwire.tools.base import Runnable, ToolSource
from toolwire.tools.context import Context, Progress, serving
from toolwire.tools.mcp import MCP, source, stdio
from toolwire.types import Media

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_GRACE", 0.2)


def using(test: Callable[[MCP], Awaitable[None]], *habits: str, **options: Any) -> None:
    """Runs the test with an open server of these habits; whatever happens, its process is gone afterwards."""

    async def main() -> None:
        async with MCP(bare(*habits), **{"timeout": 5.0, **options}) as opened:
            pid = json.loads(text_of(await opened.call("where", {})))["pid"]
            await test(opened)
        assert not is_running(pid)

    asyncio.run(main())


def test_tools_are_listed_page_by_page_under_the_server_s_name() -> None:
    async def test(opened: MCP) -> None:
        tools = {tool.tool.name: tool for tool in await opened.tools()}
        assert len(tools) == 10
        assert tools["bare__echo"].changes_things is False
        assert tools["bare__die"].changes_things is True
        assert tools["bare__echo"].tool.schema == {"type": "object"}
        assert repr(tools["bare__echo"]) == "MCPTool('bare__echo')"
        made: Runnable = tools["bare__echo"]
        assert made.timeout is not None
        assert made.timeout > 5.0

    using(test)


def test_a_source_implements_the_protocol() -> None:
    made: ToolSource = MCP("run")
    assert repr(made) == "MCP('run')"


def test_arguments_and_results() -> None:
    async def test(opened: MCP) -> None:
        assert (
            text_of(await run(opened, "echo", {"a": Decimal("1.5"), "b": ["ü", None]}))
            == '{"a": 1.5, "b": ["\\u00fc", null]}'
        )
        (image,) = (await run(opened, "image")).parts
        assert isinstance(image, Media)
        assert image.mime == "image/png"
        refused = await opened.call("echo", {"a": Decimal("1e999")})
        assert refused.is_error
        assert "not made" in text_of(refused)

    using(test)


def test_many_calls_at_once_keep_their_answers() -> None:
    async def test(opened: MCP) -> None:
        outputs = await asyncio.gather(*(opened.call("echo", {"n": number}) for number in range(100)))
        assert [json.loads(text_of(output))["n"] for output in outputs] == list(range(100))

    using(test)


def test_names_are_legal_and_do_not_change() -> None:
    opened = MCP("run", name="s" * 40)
    long = opened._public_name("t" * 60)
    assert len(long) <= 64
    assert opened._public_name("a b") == opened._public_name("a b") != opened._public_name("a/b")
    assert opened._public_name("t" * 60) == long


def test_only_allowed_tools_are_listed() -> None:
    async def test(opened: MCP) -> None:
        assert [tool.tool.name for tool in await opened.tools()] == ["mine__echo", "mine__image", "mine__spawn"]

    using(test, name="mine", allow=["echo", "*a*g*", "spa?n"])


def test_the_list_is_read_again_when_it_changes() -> None:
    async def test(opened: MCP) -> None:
        before = await opened.tools()
        assert await opened.tools() is before
        await run(opened, "grow")
        assert len(await opened.tools()) == len(before) + 1

    using(test)


@pytest.mark.slow
@pytest.mark.parametrize(("habit", "count"), [("endless", 300), ("circle", 3)])
def test_lists_without_end_are_cut(habit: str, count: int) -> None:
    async def test(opened: MCP) -> None:
        assert len(await opened.tools()) == count

    using(test, habit)


def test_progress_is_passed_on() -> None:
    async def test(opened: MCP) -> None:
        heard: list[Progress] = []
        with serving(Context("call_1", emit=heard.append)):
            await run(opened, "count")
        assert heard == [Progress(message=f"step {step}", done=step, total=3) for step in range(3)]

    using(test)


def test_a_stalling_tool_is_cancelled_and_the_session_continues() -> None:
    async def test(opened: MCP) -> None:
        output = await run(opened, "stall")
        assert output.is_error
        assert text_of(output) == 'MCP server "bare" did not answer within 0.2 seconds; the call was cancelled.'
        assert len(json.loads(text_of(await run(opened, "cancelled")))) == 1

    using(test, timeout=0.2)


@pytest.mark.slow
def test_a_flood_of_messages_stops_neither_the_loop_nor_the_end() -> None:
    async def main() -> None:
        heard: list[Progress] = []
        async with MCP(bare(), timeout=0.5) as opened:
            with serving(Context("call_1", emit=heard.append)):
                call = asyncio.create_task(opened.call("flood", {}))
            beats = 0
            while not call.done():
                await asyncio.sleep(0.01)
                beats += 1
            assert text_of(await call).endswith("the call was cancelled.")
        assert beats > 10
        assert 0 < len(heard) <= 11

    asyncio.run(main())


def test_cancelling_a_call_reaches_the_server_and_keeps_the_session() -> None:
    async def test(opened: MCP) -> None:
        pid = json.loads(text_of(await run(opened, "where")))["pid"]
        call = asyncio.create_task(run(opened, "stall"))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(json.loads(text_of(await run(opened, "cancelled")))) == 1
        assert json.loads(text_of(await run(opened, "where")))["pid"] == pid

    using(test)


def test_a_server_that_dies_in_a_call_is_reported_and_restarted() -> None:
    async def test(opened: MCP) -> None:
        waiting = [asyncio.create_task(opened.call(name, {})) for name in ("stall", "stall", "die")]
        for output in await asyncio.gather(*waiting):
            assert output.is_error
            assert 'it ended with exit code 3. It last said: "something broke with ***"' in text_of(output)
        assert opened.problem
        assert text_of(await run(opened, "echo", {"a": 1})) == '{"a": 1}'
        assert opened.problem == ""

    using(test, env={"KEY": "hunter2-the-secret"})


def test_a_server_that_keeps_dying_is_tried_less_often() -> None:
    async def test(opened: MCP) -> None:
        outputs = [text_of(await opened.call("die", {})) for _ in range(3)]
        assert "exit code 3" in outputs[0]
        assert "exit code 3" in outputs[1]
        assert outputs[2].startswith("It is tried again in 1 seconds.")
        assert (await opened.tools())[0].tool.name == "bare__echo"

    using(test)


def test_a_server_that_was_killed_between_calls_is_started_again() -> None:
    async def test(opened: MCP) -> None:
        pid = json.loads(text_of(await run(opened, "where")))["pid"]
        os.kill(pid, 9)
        await asyncio.sleep(0.05)
        assert text_of(await run(opened, "echo")) == "{}"

    using(test)


def test_an_invalid_answer_is_an_error() -> None:
    async def test(opened: MCP) -> None:
        output = await run(opened, "nonsense")
        assert output.is_error
        assert "gave an answer that is not one" in text_of(output)
        refused = await opened.call("refuse", {})
        assert refused.is_error
        assert text_of(refused) == 'MCP server "bare" refused: "no such tool".'

    using(test)


def test_other_output_on_standard_output_is_ignored() -> None:
    async def test(opened: MCP) -> None:
        assert text_of(await run(opened, "echo")) == "{}"

    using(test, "chatty")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (bare("quits"), 'it ended with exit code 7. It last said: "cannot find my settings".'),
        (bare("mute"), "it did not answer within 0.3 seconds"),
        (bare("babbles"), "something that is not MCP"),
        (bare("endless_line"), "a line of over"),
        ("no-such-command-anywhere", 'the command "no-such-command-anywhere" cannot be run'),
        (["/"], "cannot be run"),
        ("http://127.0.0.1:9/mcp", "All connection attempts failed"),
    ],
)
def test_a_server_that_does_not_start_is_reported_with_the_reason(command: str | list[str], words: str) -> None:
    async def main() -> None:
        closed = MCP(command, start_timeout=0.3 if "mute" in command else 20)
        with pytest.raises(ConfigError, match="MCP server") as caught:
            await closed.open()
        assert words in str(caught.value)
        output = await closed.call("anything", {})
        assert output.is_error
        assert await closed.tools() == ()
        await closed.close()

    asyncio.run(main())


def test_a_server_that_cannot_list_its_tools_is_reported_and_dropped() -> None:
    async def main() -> None:
        closed = MCP(bare("listless"))
        with pytest.raises(ConfigError, match='refused: "method not found"'):
            await closed.open()
        assert closed._session is None

    asyncio.run(main())


@pytest.mark.slow
def test_everything_the_server_started_ends_with_it() -> None:
    async def main() -> None:
        opened = MCP(bare("deaf"), timeout=5)
        await opened.open()
        child = int(text_of(await run(opened, "spawn")))
        server = json.loads(text_of(await run(opened, "where")))["pid"]
        assert is_running(child)
        await opened.close()
        assert not is_running(server)
        wait_until(lambda: not is_running(child))  # it is another's child, and dies when the machine has time for it
        await opened.close()

    asyncio.run(main())


def test_a_call_that_waits_when_it_closes_is_answered() -> None:
    async def main() -> None:
        opened = MCP(bare(), timeout=5)
        await opened.open()
        call = asyncio.create_task(opened.call("stall", {}))
        await asyncio.sleep(0.05)
        await opened.close()
        assert (await call).is_error

    asyncio.run(main())


@pytest.mark.slow
def test_cancelling_the_start_leaves_nothing_behind() -> None:
    mark = f"mark-{os.getpid()}"  # others may run the same test at the same time

    async def main() -> None:
        opened = MCP(bare("mute", mark))
        task = asyncio.create_task(opened.open())
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert opened._session is None

    asyncio.run(main())
    assert (
        subprocess.run(["pgrep", "-f", f"bare_server.py mute {mark}"], capture_output=True, check=False).stdout == b""
    )


def test_a_source_may_be_used_in_one_loop_after_another() -> None:
    opened = MCP(bare(), timeout=5)
    pids = [json.loads(text_of(asyncio.run(opened.call("where", {}))))["pid"] for _ in range(2)]
    assert pids[0] != pids[1]
    assert not any(map(is_running, pids))


@pytest.mark.slow
def test_a_closed_event_loop_leaves_no_server_running() -> None:
    opened = MCP(bare(), timeout=5)
    loop = asyncio.new_event_loop()
    pid = json.loads(text_of(loop.run_until_complete(opened.call("where", {}))))["pid"]

    async def main() -> None:
        await opened.call("echo", {})
        while is_running(pid):
            await asyncio.sleep(0.01)
        await opened.close()

    asyncio.run(main())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()


def test_secrets_of_this_process_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-you")

    async def test(opened: MCP) -> None:
        environment = json.loads(text_of(await run(opened, "where")))["env"]
        assert "OPENAI_API_KEY" not in environment
        assert environment["MINE"] == "yes"
        assert "PATH" in environment

    using(test, env={"MINE": "yes"})


def test_without_the_sdk_the_error_has_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "toolwire.tools.mcp.session", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ConfigError) as caught:
        asyncio.run(MCP("run").open())
    assert caught.value.hint == f"Install it: {install_command('mcp')}"


def test_the_sdk_is_not_imported_before_it_is_needed() -> None:
    program = "import sys, toolwire.tools.mcp, toolwire.tools.functions; print('mcp' in sys.modules, 'pydantic' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False False\n"


def test_annotations_of_the_server_decide_about_approval() -> None:
    class Hints:
        def __init__(self, read_only: bool | None, destructive: bool | None) -> None:
            self.read_only_hint, self.destructive_hint = read_only, destructive

    given = [None, Hints(None, None), Hints(True, None), Hints(True, False), Hints(True, True), Hints(False, False)]
    assert [source._changes_things(each) for each in given] == [True, True, False, False, True, True]
