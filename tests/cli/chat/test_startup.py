"""One run of the command: which tools it has. The whole of it is in tests/cli/chat/test_command.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from toolwire.agent.agent import runnables_of
from toolwire.cli.chat.options import Options
from toolwire.cli.chat.startup import named, tools_of
from toolwire.errors import ConfigError
from toolwire.tools.mcp import MCP

pytestmark = pytest.mark.slow


def names(options: Options) -> str:
    return named(asyncio.run(runnables_of(tuple(tools_of(options)))))


def test_two_servers_of_one_name_are_told_apart() -> None:
    first, second = tools_of(Options(mcp=("python same.py", "python same.py --other")))
    assert isinstance(first, MCP)
    assert isinstance(second, MCP)
    assert (first.name, second.name) == ("same", "same_2")


def test_nothing_is_allowed_that_was_not_asked_for(tmp_path: Path) -> None:
    assert names(Options()) == ""
    assert names(Options(workspace=tmp_path)) == "read, list, glob, grep"
    assert names(Options(workspace=tmp_path, allow_write=True)) == "read, list, glob, grep, write, edit"


def test_shell_and_writing_mean_the_folder_we_are_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.txt").write_text("")
    tools = asyncio.run(runnables_of(tuple(tools_of(Options(allow_shell=True)))))
    assert named(tools) == "read, list, glob, grep, shell"
    listed = asyncio.run(tools[1].run({}))
    assert "here.txt" in str(listed.parts)


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        list(tools_of(Options(workspace=tmp_path / "nowhere")))


def test_many_names_are_counted(tmp_path: Path) -> None:
    tools = asyncio.run(runnables_of(tuple(tools_of(Options(workspace=tmp_path)))))
    assert named(tools * 4) == ", ".join(["read, list, glob, grep"] * 3) + " and 4 more"
