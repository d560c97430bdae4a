from __future__ import annotations

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.builtin_tools.requests import (
    ABILITIES,
    EXECS,
    REQUIRED_DEFAULTS,
    ToolRequest,
    tool_request,
)
from toolwire.backends.cursor.wire.execs import Exec


def test_commands_have_milliseconds() -> None:
    args = agent.ShellArgs(command="a", working_directory="/w", timeout=70_000_000, is_background=True)
    assert tool_request(Exec(1, "", "shell", args)) == ToolRequest(
        "shell", {"command": "a", "workdir": "/w", "timeout": 600_000, "background": True}
    )
    assert tool_request(Exec(1, "", "pi_bash", agent.PiBashExecArgs(command="a", timeout=1.5))) == ToolRequest(
        "shell", {"command": "a", "timeout": 1500}
    )
    for odd in (float("nan"), float("inf"), -1.0):
        wish = tool_request(Exec(1, "", "pi_bash", agent.PiBashExecArgs(command="a", timeout=odd)))
        assert wish == ToolRequest("shell", {"command": "a"})


def test_a_search_without_pattern_is_for_names() -> None:
    assert tool_request(Exec(1, "", "grep", agent.GrepArgs(glob="*.py", head_limit=3))) == ToolRequest(
        "glob", {"pattern": "*.py", "limit": 3}
    )
    found = tool_request(Exec(1, "", "grep", agent.GrepArgs(pattern="a", glob="*.py", multiline=True)))
    assert found == ToolRequest("grep", {"pattern": "a", "include": "*.py", "mode": "content", "multiline": True})


def test_what_is_meant_literally_is_escaped() -> None:
    found = tool_request(Exec(1, "", "pi_grep", agent.PiGrepExecArgs(pattern="a.b (c)", literal=True)))
    assert found == ToolRequest("grep", {"pattern": r"a\.b \(c\)", "mode": "content"})


def content_of(kind: str, args: object) -> object:
    request = tool_request(Exec(1, "", kind, args))
    assert request is not None
    return request.values["content"]


def test_content_is_text_where_it_can_be() -> None:
    assert content_of("write", agent.WriteArgs(path="a", file_text="x")) == "x"
    assert content_of("write", agent.WriteArgs(path="a", file_bytes="ü".encode())) == "ü"
    assert content_of("write", agent.WriteArgs(path="a", file_bytes=b"\xff")) == b"\xff"
    assert content_of("pi_write", agent.PiWriteExecArgs(path="a", content="x")) == "x"


def test_every_argument_of_an_exec_is_a_field_of_its_message() -> None:
    messages = agent.ExecServerMessage.DESCRIPTOR.fields_by_name
    for kind, form in EXECS.items():
        assert form.ability in ABILITIES
        assert set(form.fields.values()) <= set(messages[f"{kind}_args"].message_type.fields_by_name)


def test_no_tool_stands_for_two_abilities() -> None:
    names = [name for ability in ABILITIES.values() for name in ability.tools]
    assert len(names) == len(set(names))


def test_no_parameter_is_filled_twice() -> None:
    for ability in ABILITIES.values():
        places = [place for argument in ability.parameters.values() for place in dict.fromkeys(argument)]
        assert len(places) == len(set(places))


def test_nothing_demanded_makes_a_tool_less_careful() -> None:
    assert REQUIRED_DEFAULTS["requires_approval"] is True
    assert not any("danger" in name or "sandbox" in name for name in REQUIRED_DEFAULTS)
