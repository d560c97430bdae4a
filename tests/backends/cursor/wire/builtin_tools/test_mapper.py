from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.wire.client_tools import BASH, TEXT, TEXTS, client, fits, map_to_client, result, tool
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.builtin_tools.mapper import map_exec
from toolwire.backends.cursor.wire.builtin_tools.requests import ABILITIES
from toolwire.backends.cursor.wire.execs import Exec
from toolwire.types import Text, Tool, ToolResult

_EXECS: list[tuple[str, Any]] = [
    ("shell", agent.ShellArgs(command="ls", working_directory="/w", timeout=5000)),
    ("shell_stream", agent.ShellArgs(command="ls")),
    ("mini_swe_agent_bash", agent.ShellArgs(command="ls")),
    ("pi_bash", agent.PiBashExecArgs(command="ls", timeout=2.5)),
    ("read", agent.ReadArgs(path="/w/a", offset=2, limit=3)),
    ("redacted_read", agent.ReadArgs(path="/w/a")),
    ("pi_read", agent.PiReadExecArgs(path="/w/a")),
    ("write", agent.WriteArgs(path="/w/a", file_text="x")),
    ("pi_write", agent.PiWriteExecArgs(path="/w/a", content="x")),
    ("ls", agent.LsArgs(path="/w")),
    ("pi_ls", agent.PiLsExecArgs()),
    ("grep", agent.GrepArgs(pattern="x", path="/w", glob="*.py", case_insensitive=True, output_mode="count")),
    ("grep", agent.GrepArgs(glob="**/*.py", path="/w")),
    ("pi_grep", agent.PiGrepExecArgs(pattern="a.b", literal=True, context=2)),
    ("pi_find", agent.PiFindExecArgs(pattern="*.py", path="/w", limit=5)),
    ("delete", agent.DeleteArgs(path="/w/a")),
]
_EDIT = agent.PiEditExecArgs(path="/w/a", edits=[agent.PiEditReplacement(old_text="a", new_text="b")])


@pytest.mark.parametrize("who", ["opencode", "claude-code", "codex"])
@pytest.mark.parametrize(("kind", "args"), _EXECS, ids=[kind for kind, _ in _EXECS])
def test_every_exec_becomes_a_call_that_this_client_takes(who: str, kind: str, args: Any) -> None:
    tools = client(who)
    call = map_to_client(kind, args, tools)
    (chosen,) = [one for one in tools if one.name == call.name]
    assert chosen.schema is not None
    jsonschema.validate(call.args, chosen.schema)


def test_each_client_by_its_own_names() -> None:
    opencode, claude, codex = client("opencode"), client("claude-code"), client("codex")
    shell = agent.ShellArgs(command="ls", working_directory="/w d", timeout=5000)
    found = map_to_client("shell", shell, opencode)
    assert (found.name, found.args) == ("bash", {"command": "ls", "workdir": "/w d", "timeout": 5000})
    found = map_to_client("shell", shell, claude)
    assert (found.name, found.args) == ("Bash", {"command": "(cd -- '/w d' || exit 1\nls\n)", "timeout": 5000})
    found = map_to_client("shell", shell, codex)
    assert (found.name, found.args) == ("exec_command", {"cmd": "ls", "workdir": "/w d", "yield_time_ms": 5000})
    read = agent.ReadArgs(path="/w/a", offset=2, limit=3)
    assert map_to_client("read", read, opencode).args == {"filePath": "/w/a", "offset": 2, "limit": 3}
    assert map_to_client("read", read, claude).args == {"file_path": "/w/a", "offset": 2, "limit": 3}
    assert map_to_client("read", read, codex).name == "exec_command"
    write = agent.WriteArgs(path="/w/a", file_text="x\n")
    assert map_to_client("write", write, opencode).args == {"filePath": "/w/a", "content": "x\n"}
    assert map_to_client("write", write, claude).args == {"file_path": "/w/a", "content": "x\n"}
    edited = {"filePath": "/w/a", "oldString": "a", "newString": "b"}
    assert (map_to_client("pi_edit", _EDIT, opencode).name, map_to_client("pi_edit", _EDIT, opencode).args) == (
        "edit",
        edited,
    )
    assert map_to_client("pi_edit", _EDIT, claude).args == {"file_path": "/w/a", "old_string": "a", "new_string": "b"}
    grep = agent.GrepArgs(pattern="x", path="/w", glob="*.py", case_insensitive=True)
    assert map_to_client("grep", grep, opencode).args == {"pattern": "(?i)x", "path": "/w", "include": "*.py"}
    assert map_to_client("grep", grep, claude).name == "Bash"
    assert map_to_client("grep", agent.GrepArgs(glob="*.py"), opencode).name == "glob"
    assert map_to_client("ls", agent.LsArgs(path="/w"), opencode).name == "bash"
    assert map_to_client("fetch", agent.FetchArgs(url="http://x"), opencode).args == {"url": "http://x"}


def test_other_clients_tools_are_known_too() -> None:
    vscode = [
        tool("read_file", "filePath", "startLine", "endLine", filePath=TEXT, startLine={"type": "number"}, endLine={"type": "number"}),
        tool("run_in_terminal", "command", "explanation", "isBackground", command=TEXT, explanation=TEXT, isBackground={"type": "boolean"}),
        tool("grep_search", "query", "isRegexp", query=TEXT, isRegexp={"type": "boolean"}, includePattern=TEXT),
        tool("list_dir", "path", path=TEXT),
        tool("file_search", "query", query=TEXT),
    ]  # fmt: skip
    assert map_to_client("read", agent.ReadArgs(path="/a", offset=5, limit=10), vscode).args == {
        "filePath": "/a", "startLine": 5, "endLine": 14,
    }  # fmt: skip
    assert map_to_client("read", agent.ReadArgs(path="/a"), vscode).args["startLine"] == 1
    assert map_to_client("shell", agent.ShellArgs(command="ls"), vscode).args["isBackground"] is False
    assert map_to_client("grep", agent.GrepArgs(pattern="a"), vscode).args == {"query": "a", "isRegexp": True}
    assert map_to_client("ls", agent.LsArgs(path="/w"), vscode).args == {"path": "/w"}
    assert map_to_client("pi_find", agent.PiFindExecArgs(pattern="*.py"), vscode).args == {"query": "*.py"}
    webfetch = tool("WebFetch", "url", "prompt", url=TEXT, prompt=TEXT)
    assert set(map_to_client("fetch", agent.FetchArgs(url="http://x"), [webfetch]).args) == {"url", "prompt"}
    zero_based = tool(
        "read_file", "absolute_path", absolute_path=TEXT, offset={"type": "number", "description": "0-based line"}
    )
    assert map_to_client("read", agent.ReadArgs(path="/a", offset=5), [zero_based]).args == {
        "absolute_path": "/a",
        "offset": 4,
    }


def test_a_command_follows_the_types_of_the_tool() -> None:
    array = tool("shell", "command", command=TEXTS, timeout_ms={"type": "integer"}, workdir=TEXT)
    assert map_to_client("shell", agent.ShellArgs(command="a | b", timeout=9), [array]).args == {
        "command": ["bash", "-lc", "a | b"],
        "timeout_ms": 9,
    }
    several = tool("shell", "commands", commands=TEXTS)
    assert map_to_client("shell", agent.ShellArgs(command="a"), [several]).args == {"commands": ["a"]}
    assert map_to_client("pi_bash", agent.PiBashExecArgs(command="a"), [several]).args == {"commands": ["a"]}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "description": "Optional timeout in milliseconds"}, 2500),
        ({"type": "integer", "description": "Timeout in seconds"}, 3),
        ({"type": "integer", "maximum": 2, "description": "Seconds"}, 2),
        ({"type": "integer", "description": "How long"}, None),
    ],
)
def test_times_are_in_the_units_of_the_tool(schema: dict[str, Any], expected: int | None) -> None:
    call = map_to_client(
        "shell", agent.ShellArgs(command="a", timeout=2500), [tool("bash", "command", command=TEXT, timeout=schema)]
    )
    assert call.args.get("timeout") == expected


def test_a_required_member_without_a_value_makes_a_tool_useless() -> None:
    odd = tool("read", "path", "passphrase", path=TEXT, passphrase=TEXT)
    assert map_exec(Exec(1, "", "read", agent.ReadArgs(path="a")), [odd], fits) is None
    assert map_to_client("read", agent.ReadArgs(path="a"), [odd, BASH]).name == "bash"
    strange = Tool(
        name="read", schema={"type": "object", "properties": {"path": {"$ref": "#/x"}}, "required": ["path"]}
    )
    assert map_exec(Exec(1, "", "read", agent.ReadArgs(path="a")), [strange], fits) is None


@pytest.mark.parametrize(
    ("schema", "is_taken"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "string", "minLength": 1}]}, False),  # both of them, so not one
        ({"oneOf": [{"type": "string"}, {"type": "array"}]}, True),
        ({"type": "string", "pattern": "^/"}, True),
        ({"type": "string", "pattern": "^x"}, False),
        ({"$ref": "#/$defs/path"}, True),
    ],
)
def test_arguments_are_judged_by_the_whole_schema(schema: dict[str, Any], is_taken: bool) -> None:
    members = {"type": "object", "properties": {"path": schema}, "required": ["path"]}
    defined = {**members, "$defs": {"path": {"type": "string"}}}
    found = map_exec(Exec(1, "", "read", agent.ReadArgs(path="/a")), [Tool(name="read_file", schema=defined)], fits)
    assert (found is not None) == is_taken


@pytest.mark.parametrize(("choices", "is_taken"), [([0, "x"], False), ([False], True)])
def test_a_boolean_is_no_number(choices: list[Any], is_taken: bool) -> None:
    tools = [tool("list_files", "path", "recursive", path=TEXT, recursive={"enum": choices})]
    assert (map_exec(Exec(1, "", "ls", agent.LsArgs(path="/a")), tools, fits) is not None) == is_taken


def test_a_tool_that_cannot_narrow_is_not_asked() -> None:
    bare = tool("grep", "pattern", pattern=TEXT)
    assert map_to_client("grep", agent.GrepArgs(pattern="x"), [bare, BASH]).name == "grep"
    assert map_to_client("grep", agent.GrepArgs(pattern="x", glob="*.py"), [bare, BASH]).name == "bash"
    assert map_exec(Exec(1, "", "grep", agent.GrepArgs(pattern="x", glob="*.py")), [bare], fits) is None


def test_names_with_a_namespace_come_last() -> None:
    remote = tool("mcp__files__read_file", "path", path=TEXT)
    own = tool("Read", "file_path", file_path=TEXT)
    assert map_to_client("read", agent.ReadArgs(path="a"), [remote, own]).name == "Read"
    assert map_to_client("read", agent.ReadArgs(path="a"), [remote]).name == "mcp__files__read_file"


def test_only_tools_that_take_arguments_are_borrowed() -> None:
    for kind in ("custom", "hosted"):
        assert (
            map_exec(
                Exec(1, "", "shell", agent.ShellArgs(command="a")), [Tool(name="bash", kind=kind, schema={})], fits
            )
            is None
        )
    deferred = Tool(name="bash", schema=BASH.schema, is_deferred=True)
    assert map_exec(Exec(1, "", "shell", agent.ShellArgs(command="a")), [deferred], fits) is None


def test_several_edits_are_one_call_or_none() -> None:
    two = agent.PiEditExecArgs(path="a", edits=[_EDIT.edits[0], _EDIT.edits[0]])
    inner = {"type": "object", "properties": {"oldText": TEXT, "newText": TEXT}, "required": ["oldText", "newText"]}
    many = tool("edit", "path", "edits", path=TEXT, edits={"type": "array", "items": inner})
    change = {"oldText": "a", "newText": "b"}
    assert map_to_client("pi_edit", two, [many]).args == {"path": "a", "edits": [change, change]}
    assert map_exec(Exec(1, "", "pi_edit", two), client("claude-code"), fits) is None


@pytest.mark.parametrize("kind", ["mcp", "background_shell_spawn", "diagnostics", "computer_use", "", "subagent"])
def test_other_kinds_are_not_borrowed(kind: str) -> None:
    assert map_exec(Exec(1, "", kind, None), client("opencode"), fits) is None


def test_every_ability_names_what_it_needs() -> None:
    for ability in ABILITIES.values():
        assert set(ability.needed) <= set(ability.parameters)
        assert all(name == name.casefold() for name in ability.tools)


@given(
    st.sampled_from(_EXECS), st.sampled_from(["opencode", "claude-code", "codex"]), st.text(max_size=200), st.booleans()
)
def test_whatever_a_client_answers_is_a_typed_result(
    which: tuple[str, Any], who: str, text: str, is_error: bool
) -> None:
    call = map_to_client(*which, client(who))
    result_of = ToolResult(call_id="c", parts=(Text(text=text),), is_error=is_error)
    for data in call.answer(result_of):
        agent.AgentClientMessage.FromString(data)


def test_half_a_character_is_no_exception() -> None:
    call = map_to_client("shell", agent.ShellArgs(command="a"), [BASH])
    assert result(call, "x\ud800y").success.stdout == "x\ufffdy"
