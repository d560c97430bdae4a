"""Tests of the test server: what it rejects, and how its model follows the script."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.programs.simulated.manners import MANNERS, plain, sloppy
from tests.programs.simulated.model import Past, Prompt, answer, script_in
from tests.programs.simulated.wires import WIRES, Refused, no_tools, odd_pieces
from tests.programs.stage import final_text, prompt, reading

pytestmark = pytest.mark.slow

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SCRIPT = script_in(prompt(reading("read", arguments={"path": "/a"}), final_text(" {{result:0:[a-z]+$}}")))
REFUSAL = '{"error": "unknown_tool"}'


def prompted(*past: Past, **tools: Any) -> Prompt:
    return Prompt(SCRIPT, tools or {"read": SCHEMA}, list(past))


def test_the_model_follows_its_script() -> None:
    first = answer(prompted(), plain)
    assert first.text.startswith("I will read it.\n\n<tool_call>")
    done = answer(prompted(Past("read", {"path": "/a"}, "SECRET-0a is the word")), plain)
    assert (done.text, done.step, done.attempt) == ("ALLDONE SECRET-0a word", 1, 0)


def test_the_model_tries_again_when_it_was_refused() -> None:
    first = answer(prompted(), sloppy)
    assert "look_into_the_file" in first.text
    second = answer(prompted(Past("look_into_the_file", {}, REFUSAL)), sloppy)
    assert (second.step, second.attempt) == (0, 1)
    assert '"read"' in second.text


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (prompted(write=SCHEMA), "TOOL-NOT-OFFERED: read"),
        (prompted(read=SCHEMA | {"required": ["file"]}), "ARGUMENTS-DO-NOT-FIT: read"),
        (prompted(Past("read", {"path": "/b"}, "SECRET-0a")), "HISTORY-ALTERED: read"),
        (prompted(Past("read", {"path": "/a"}, "nothing there")), "NOT-IN-RESULT-0"),
    ],
)
def test_the_model_complains(given: Prompt, complaint: str) -> None:
    assert complaint in answer(given, plain).text


REFUSED = [
    ("openai-chat", {"tools": []}),
    ("openai-chat", {"tool_choice": "none"}),
    ("openai-chat", {"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}),
    ("openai-chat", {"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}),
    ("openai-chat", {"messages": [{"role": "assistant", "content": None}]}),
    ("openai-chat", {"messages": [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}]}),
    ("openai-chat", {"messages": [{"role": "developer", "content": "y"}]}),
    ("anthropic", {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}]}),
    ("openai-responses", {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}),
    ("openai-responses", {"input": "x", "previous_response_id": "r"}),
]


@pytest.mark.parametrize(("dialect", "request_"), REFUSED)
def test_the_server_refuses_what_it_does_not_know(dialect: str, request_: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        _read(dialect, {"messages": [], **request_})


def test_the_server_reads_messages_as_text() -> None:
    said = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "u"}]}]
    assert _read("openai-chat", {"messages": said}) == [("system", "s"), ("user", "u")]
    assert _read("anthropic", {"system": "s", "messages": said[1:]}) == [("system", "s"), ("user", "u")]
    assert _read("openai-responses", {"instructions": "s", "input": "u"}) == [("system", "s"), ("user", "u")]


@pytest.mark.parametrize("dialect", WIRES)
def test_a_stream_has_the_whole_text_in_odd_pieces(dialect: str) -> None:
    text = "é中😀 <tool_call>{}</tool_call> " * 3
    data = [
        line[6:] for event in WIRES[dialect].stream(text) for line in event.splitlines() if line.startswith("data:")
    ]
    found = "".join(map(_delta, data))
    assert found == text
    assert len(odd_pieces(text)) > 10


@pytest.mark.parametrize("manner", MANNERS)
def test_every_manner_names_the_tool(manner: str) -> None:
    given = prompted(Past("no_such_tool", {}, REFUSAL))  # after the mistake of the sloppy model
    assert "read" in answer(given, MANNERS[manner]).text.replace("I will read it.", "")


def _read(dialect: str, request: dict[str, Any]) -> list[Any]:
    no_tools(request)
    return WIRES[dialect].read(request)


def _delta(data: str) -> str:
    if data == "[DONE]":
        return ""
    value = json.loads(data)
    if value.get("type") == "response.output_text.delta":
        return str(value["delta"])
    if value.get("type") == "content_block_delta":
        return str(value["delta"]["text"])
    return "".join(choice["delta"].get("content", "") for choice in value.get("choices", []))
