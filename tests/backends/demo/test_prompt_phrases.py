"""The first prompts that a newcomer types in `toolwire chat --workspace . --allow-write --allow-shell`, with its real tools."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.backends.event_contract import answer_of, result, user
from toolwire.agent.agent import runnables_of
from toolwire.backends.demo.backend import Demo
from toolwire.tools.workspace import workspace
from toolwire.types import Message, Request, Text, Tool, ToolCall

ALL = ("read", "list", "glob", "grep", "write", "edit")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tool, ...]:
    toolbox = workspace(tmp_path_factory.mktemp("workspace"), allow=ALL, shell=True)
    return tuple(runnable.tool for runnable in asyncio.run(runnables_of((toolbox,))))


def answer_to(*messages: Message, tools: tuple[Tool, ...] = ()) -> Any:
    request = Request(model="echo-tools", messages=messages, tools=tools)
    (part,) = asyncio.run(answer_of(Demo(), request)).parts_of(0)
    return (part.name, part.args) if isinstance(part, ToolCall) else part.text if isinstance(part, Text) else None


@pytest.mark.parametrize(
    ("prompt", "name", "arguments"),
    [
        ("read the file README.md", "read", {"path": "README.md"}),
        ("show me README.md", "read", {"path": "README.md"}),
        ("cat src/a.py", "read", {"path": "src/a.py"}),
        ("What does src/a.py do?", "read", {"path": "src/a.py"}),
        ("add a line to README.md", "read", {"path": "README.md"}),
        ("list files", "list", {}),
        ("ls", "list", {}),
        ("what files are here", "list", {}),
        ("what's in this folder?", "list", {}),
        ("summarize this project", "list", {}),
        ("list the files in src", "list", {"path": "src"}),
        ("how many files are in src?", "list", {"path": "src"}),
        ("search for TODO in src", "grep", {"pattern": "TODO", "path": "src"}),
        ("find TODO in src", "grep", {"pattern": "TODO", "path": "src"}),
        ("where is the word TODO?", "grep", {"pattern": "TODO"}),
        ("find all python files", "glob", {"pattern": "*.py"}),
        ("find *.ts", "glob", {"pattern": "*.ts"}),
        ("run ls -la", "shell", {"command": "ls -la"}),
        ("run the command `ls src`", "shell", {"command": "ls src"}),
        ("write hello to a.txt", "write", {"path": "a.txt", "content": "hello"}),
        ("create a file notes.txt with the text hello", "write", {"path": "notes.txt", "content": "hello"}),
        (
            "edit README.md and replace hi with hello",
            "edit",
            {"path": "README.md", "old_text": "hi", "new_text": "hello"},
        ),
    ],
)
def test_a_natural_prompt_makes_the_obvious_call(
    tools: tuple[Tool, ...], prompt: str, name: str, arguments: dict[str, Any]
) -> None:
    assert answer_to(user(prompt), tools=tools) == (name, arguments)


@pytest.mark.parametrize(
    "prompt",
    [
        "hello",
        "what is 2+2",
        "weather in Paris",
        "what time is it",
        "write a poem",
        "open the door",
        "delete README.md",
    ],
)
def test_a_prompt_without_a_fitting_tool_gets_advice(tools: tuple[Tool, ...], prompt: str) -> None:
    text = answer_to(user(prompt), tools=tools)
    assert f'You said: "{prompt}"' in text
    assert "none of the tools (read, list, glob, grep, write, edit, shell)" in text


def test_without_tools_it_names_the_flag_that_offers_some() -> None:
    assert "`toolwire chat --workspace .`" in answer_to(user("read the file README.md"))


def test_a_result_of_several_lines_stays_as_it_is() -> None:
    call = Message(role="assistant", parts=(ToolCall(id="call_1", name="list", raw="{}"),))
    told = answer_to(user("ls"), call, result("call_1", "./\n  README.md  5 B"))
    assert told == "list said:\n./\n  README.md  5 B\n"


def test_a_named_tool_is_called_without_a_path_too() -> None:
    tool = Tool(name="read_file", schema={"properties": {"path": {"type": "string"}}, "required": ["path"]})
    assert answer_to(user("use read_file"), tools=(tool,))[0] == "read_file"


def test_words_inside_a_path_pick_no_tool(tmp_path: Path) -> None:
    path = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = (Tool(name="write_file", schema=path), Tool(name="read_file", schema=path))
    assert answer_to(user("look at docs/write.file"), tools=tools) == ("read_file", {"path": "docs/write.file"})
