"""One run of the command: which tools it has. The whole of it is in tests/cli/chat/test_command.py."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.chat.stage import play
from tests.cli.listener import http, listening
from tests.free_port import free_port
from toolwire.agent.agent import runnables_of
from toolwire.cli.chat.command import ChatOptions
from toolwire.cli.chat.startup import ChatCounts, check_model, first_model, first_model_at, list_names, tools_of
from toolwire.cli.clients.gateway import DEMO
from toolwire.config.file import BackendConfig, Config, ServerConfig, StoreConfig, with_backends
from toolwire.errors import BadRequest, ConfigError, UpstreamError
from toolwire.memory.store import SqliteStore
from toolwire.server.stats_writer import recorded
from toolwire.telemetry import Record
from toolwire.tools.mcp import MCP


def names(options: ChatOptions) -> str:
    return list_names(asyncio.run(runnables_of(tuple(tools_of(options)))))


def test_two_servers_of_one_name_get_different_names() -> None:
    first, second = tools_of(ChatOptions(mcp=("python same.py", "python same.py --other")))
    assert isinstance(first, MCP)
    assert isinstance(second, MCP)
    assert (first.name, second.name) == ("same", "same_2")


def test_tools_follow_from_the_flags(tmp_path: Path) -> None:
    assert names(ChatOptions()) == ""
    assert names(ChatOptions(workspace=tmp_path)) == "read, list, glob, grep"
    assert names(ChatOptions(workspace=tmp_path, allow_write=True)) == "read, list, glob, grep, write, edit"


def test_shell_and_writing_mean_the_folder_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.txt").write_text("")
    tools = asyncio.run(runnables_of(tuple(tools_of(ChatOptions(allow_shell=True)))))
    assert list_names(tools) == "read, list, glob, grep, shell"
    listed = asyncio.run(tools[1].run({}))
    assert "here.txt" in str(listed.parts)


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        list(tools_of(ChatOptions(workspace=tmp_path / "nowhere")))


def test_many_names_are_counted(tmp_path: Path) -> None:
    tools = asyncio.run(runnables_of(tuple(tools_of(ChatOptions(workspace=tmp_path)))))
    assert list_names(tools * 4) == ", ".join(["read, list, glob, grep"] * 3) + " and 4 more"


LISTED = BackendConfig(name="listed", kind="openai-chat", models=("text-embedding-9", "talker"))
OTHER = BackendConfig(name="other", kind="openai-chat", models=("words",))
KEYLESS = BackendConfig(name="keyless", kind="anthropic", missing="KEY is not set")


def first(*backends: BackendConfig, default: str = "") -> str:
    config = with_backends(Config(server=ServerConfig(default=default)), backends)
    return asyncio.run(first_model(config))


def test_the_first_that_can_talk() -> None:
    assert first(KEYLESS, LISTED, OTHER) == "listed/talker"
    assert first(KEYLESS, LISTED, OTHER, default="other") == "other/words"


def test_the_demo_where_there_is_no_other() -> None:
    assert first() == DEMO


def test_the_demo_does_not_replace_back_ends_that_cannot_answer() -> None:
    unreachable = BackendConfig(name="down", kind="openai-chat", base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(UpstreamError) as raised:
        first(KEYLESS, unreachable)
    reported = raised.value.sentence()
    assert "keyless: KEY is not set." in reported
    assert "down: 127.0.0.1:" in reported
    assert "refused the connection" in reported
    assert "`toolwire doctor`" in reported


def test_a_server_without_models_is_reported() -> None:
    async def main() -> None:
        async with listening(http(b'{"data": []}')) as listener:
            empty = BackendConfig(name="empty", kind="openai-chat", base_url=f"http://127.0.0.1:{listener.port}/v1")
            with pytest.raises(UpstreamError, match=r"empty: it lists no models\."):
                await first_model(with_backends(Config(), (empty,)))

    asyncio.run(main())


def test_other_back_ends_answer_for_one_that_cannot() -> None:
    unreachable = BackendConfig(name="down", kind="openai-chat", base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert first(unreachable, OTHER) == "other/words"


def test_a_model_list_is_requested(tmp_path: Path) -> None:
    assert asyncio.run(first_model(play(tmp_path, [{"text": "a"}]))) == "play/scripted"


def test_a_gateway_elsewhere_says_what_it_has() -> None:
    async def main() -> None:
        body = b'{"data": [{"id": "demo/echo-tools"}, {"id": "there/one"}]}'
        async with listening(http(body)) as listener:
            url = f"http://127.0.0.1:{listener.port}/v1"
            assert await asyncio.to_thread(first_model_at, url, "") == "there/one"
        with pytest.raises(ConfigError, match="no gateway answers at"):
            await asyncio.to_thread(first_model_at, url, "")
        async with listening(http(b'{"data": [{"id": "demo/echo-tools"}]}')) as listener:
            assert await asyncio.to_thread(first_model_at, f"http://127.0.0.1:{listener.port}", "") == DEMO

    asyncio.run(main())


def test_a_name_is_checked_with_the_lists_of_the_back_ends(tmp_path: Path) -> None:
    config = play(tmp_path, [{"text": "a"}])
    config = replace(config, server=replace(config.server, default=""))
    asyncio.run(check_model(config, "play/anything"))
    asyncio.run(check_model(config, "echo-tools"))
    with pytest.raises(BadRequest, match="nobody"):
        asyncio.run(check_model(config, "nobody"))


def config_of(path: Path) -> Config:
    return Config(store=StoreConfig(kind="sqlite", path=str(path)))


async def requests_in(path: Path) -> int:
    store = SqliteStore(path, max_bytes=8 << 20, max_age=1e9)
    today = int(time.time()) // 86400
    lines = await recorded(store, [today - 1, today])
    await store.close()
    return sum(line.counts.requests for line in lines)


def test_what_was_counted_is_in_the_file_at_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        for number in range(1, 3):
            counts = ChatCounts(config_of(tmp_path / "a.db"))
            async with counts.record():
                counts.telemetry.closed(Record(backend="b", sent_model="m"))
            assert counts.problem == ""
            assert await requests_in(tmp_path / "a.db") == number

    asyncio.run(main())


def test_a_store_in_memory_is_no_place_and_no_problem() -> None:
    async def main() -> None:
        counts = ChatCounts(Config(store=StoreConfig(kind="memory")))
        async with counts.record():
            counts.telemetry.closed(Record(backend="b", sent_model="m"))
        assert counts.problem == ""

    asyncio.run(main())


def test_a_file_that_cannot_be_used_is_list_names(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database " * 100)

    async def main() -> None:
        counts = ChatCounts(config_of(tmp_path / "a.db"))
        async with counts.record():
            counts.telemetry.closed(Record(backend="b", sent_model="m"))
        assert counts.problem.startswith("this chat is not counted: ")
        assert str(tmp_path / "a.db") in counts.problem

    asyncio.run(main())


def test_a_default_file_that_cannot_be_written_is_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").write_text("a file in place of a folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    async def main() -> None:
        counts = ChatCounts(Config())
        async with counts.record():
            counts.telemetry.closed(Record(backend="b", sent_model="m"))
        assert counts.problem == ""

    asyncio.run(main())
