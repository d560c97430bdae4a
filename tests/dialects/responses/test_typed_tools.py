"""Tools with items of their own: calls and results both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.dialects.codec_harness import make_request, out
from toolwire.dialects.responses.typed_tools import TYPED, flat, is_client_run, typed_call, typed_item, typed_result
from toolwire.events import Finished, PartDelta, PartEnded, PartStarted, Started
from toolwire.types import Choice, Media, Text, ToolCall, Usage

ARGUMENTS: dict[str, dict[str, Any]] = {
    "tool_search": {"query": "close agent", "limit": 8},
    "local_shell": {"command": ["ls", "-l"], "working_directory": "/tmp"},
    "shell": {"commands": ["ls"], "timeout_ms": 5},
    "apply_patch": {"type": "create_file", "path": "a", "diff": "+é中😀"},
    "computer_use_preview": {"type": "click", "x": 0, "y": 2, "button": "left"},
    "computer": {"actions": [{"type": "move", "x": 0, "y": 0}, {"type": "screenshot"}]},
}


def called(name: str) -> ToolCall:
    args = ARGUMENTS[name]
    return ToolCall(id="call_1", name=name, raw=json.dumps(args), args=args, kind="typed")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_call_becomes_its_item_and_is_read_back(name: str) -> None:
    item = typed_item(called(name), "x_1", "completed")
    assert (item["type"], item["id"], item["call_id"], item["status"]) == (
        TYPED[name].call,
        "x_1",
        "call_1",
        "completed",
    )
    back = typed_call(item)
    assert back is not None
    assert (back.id, back.name, back.args, back.kind) == ("call_1", name, ARGUMENTS[name], "typed")


def test_items_have_the_members_their_schema_demands() -> None:
    assert typed_item(called("tool_search"), "x", "completed")["execution"] == "client"
    assert typed_item(called("local_shell"), "x", "completed")["action"] == {
        "type": "exec",
        "env": {},
        **ARGUMENTS["local_shell"],
    }
    assert typed_item(called("computer"), "x", "completed")["pending_safety_checks"] == []


def test_what_clients_add_to_a_past_call_is_not_the_models() -> None:
    action = {"commands": ["ls"], "timeout_ms": None, "max_output_length": 0}
    back = typed_call({"type": "shell_call", "call_id": "c", "action": action})
    assert back is not None
    assert back.args == {"commands": ["ls"], "max_output_length": 0}
    actions = [{"type": "move", "x": 0, "y": 1, "keys": None}]
    back = typed_call({"type": "computer_call", "call_id": "c", "action": None, "actions": actions})
    assert back is not None
    assert (back.name, back.args) == ("computer", {"actions": [{"type": "move", "x": 0, "y": 1}]})


def test_a_lone_text_is_a_list_of_one() -> None:
    call = ToolCall(id="c", name="shell", raw="{}", args={"commands": "ls"}, kind="typed")
    assert typed_item(call, "x", "completed")["action"] == {"commands": ["ls"]}


def test_a_search_has_whatever_arguments_the_model_wrote() -> None:
    call = ToolCall(id="c", name="tool_search", raw='{"query": ', kind="typed")
    item = typed_item(call, "x", "completed")
    assert item["arguments"] == '{"query": '
    back = typed_call(item)
    assert back is not None
    assert (back.raw, back.args) == ('{"query": ', None)


def test_what_a_model_adds_cannot_change_what_an_item_is() -> None:
    call = ToolCall(id="c", name="computer", raw="{}", args={"actions": [], "type": "x", "id": "y"}, kind="typed")
    item = typed_item(call, "cu_1", "completed")
    assert (item["type"], item["id"]) == ("computer_call", "cu_1")


@pytest.mark.parametrize(
    ("item", "text", "is_error"),
    [
        ({"type": "local_shell_call_output", "id": "c", "output": "done"}, "done", False),
        ({"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"}, "no", True),
        (
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "a", "stderr": "b", "outcome": {"type": "exit", "exit_code": 1}}],
            },
            "a\nb\n[exit code 1]",
            False,
        ),
        (
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "", "outcome": {"type": "timeout"}}]},
            "[timeout]",
            False,
        ),
        (
            {
                "type": "tool_search_output",
                "call_id": "c",
                "tools": [
                    {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "close"}]},
                    {"type": "function", "name": "plain"},
                ],
            },
            "Found, and callable from now on: agents__close, plain",
            False,
        ),
        ({"type": "tool_search_output", "call_id": "c", "tools": []}, "No tool was found.", False),
    ],
)
def test_results_become_text(item: dict[str, Any], text: str, is_error: bool) -> None:
    result = typed_result(item)
    assert result is not None
    assert (result.call_id, result.parts, result.is_error, result.kind) == ("c", (Text(text=text),), is_error, "typed")


def test_a_screenshot_is_an_image() -> None:
    output = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    result = typed_result({"type": "computer_call_output", "call_id": "c", "output": output})
    assert result is not None
    assert isinstance(result.parts[0], Media)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "tool_search_call", "call_id": "c", "execution": "server", "arguments": {}},
        {"type": "tool_search_call", "call_id": None, "arguments": {}},
        {"type": "web_search_call", "id": "w"},
        {"type": 5},
    ],
)
def test_what_the_provider_ran_itself_is_no_call_of_ours(item: dict[str, Any]) -> None:
    assert typed_call(item) is None


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "tool_search", "execution": "client"}, True),
        ({"type": "tool_search"}, False),
        ({"type": "shell"}, True),
        ({"type": "shell", "environment": {"type": "local"}}, True),
        ({"type": "shell", "environment": {"type": "container_auto"}}, False),
        ({"type": "local_shell"}, True),
        ({"type": "web_search"}, False),
        ({"type": ["x"]}, False),
    ],
)
def test_who_runs_a_tool(tool: dict[str, Any], expected: bool) -> None:
    assert is_client_run(tool) is expected


def test_the_default_namespace_adds_nothing() -> None:
    assert [flat("", "a"), flat("functions", "a"), flat("b", "a")] == ["a", "a", "b__a"]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_stream_adds_the_item_once_it_is_known(name: str) -> None:
    call = called(name)
    events = [
        Started(id="", model="m"),
        PartStarted(index=0, part=ToolCall(id="call_1", name=name, raw="", kind="typed")),
        PartDelta(0, call.raw),
        PartEnded(index=0, part=call),
        Finished(choices=(Choice(reason="tool_calls"),), usage=Usage(input=1, output=1)),
    ]
    data = [json.loads(line[6:]) for line in out("responses", events).decode().split("\n") if line.startswith("data: ")]
    commands = [event for event in data if ".shell_call_command." in event["type"]]
    data = [event for event in data if event not in commands]
    kinds = [event["type"] for event in data]
    assert kinds[2:] == ["response.output_item.added", "response.output_item.done", "response.completed"]
    told = [(event["type"].rpartition(".")[2], event.get("command", event.get("delta"))) for event in commands]
    expected = ARGUMENTS[name]["commands"] if name == "shell" else []
    assert told == [pair for one in expected for pair in (("added", ""), ("delta", one), ("done", one))]
    assert data[3]["item"] == data[4]["response"]["output"][0] == {**data[2]["item"], "status": "completed"}
    chosen = data[3]["item"][TYPED[name].member] if TYPED[name].member else data[3]["item"]
    assert chosen.items() >= ARGUMENTS[name].items()


def test_a_past_call_and_its_result_are_a_pair() -> None:
    found = {"type": "function", "name": "close", "parameters": {"type": "object"}}
    request = make_request(
        "responses",
        input=[
            typed_item(called("tool_search"), "tsc_1", "completed"),
            {"type": "tool_search_output", "call_id": "call_1", "execution": "client", "tools": [found]},
        ],
    )
    assert [message.role for message in request.messages] == ["assistant", "tool"]
    assert [tool.name for tool in request.tools] == ["close"]
