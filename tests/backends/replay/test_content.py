from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.backends.replay.content import RequestContent, content_of, difference, is_same, likeness, stable_text
from toolwire.dialects import DIALECTS

TOOL = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat(*messages: dict[str, Any], system: str = "Be brief.") -> RequestContent:
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": system}, *messages],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": TOOL}}],
    }
    return content_of(DIALECTS["chat"].decode_request(json.dumps(body).encode(), {}))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo", "days": 2}'}}
HISTORY = [
    user("Weather?"),
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
]


def test_the_same_conversation_is_equal_in_another_dialect() -> None:
    body = {
        "model": "other",
        "max_tokens": 5,
        "system": "Be brief.",
        "messages": [
            user("Weather?"),
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "toolu_9", "name": "weather", "input": {"days": 2, "city": "Oslo"}}
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "rain"}]},
        ],
        "tools": [{"name": "weather", "input_schema": TOOL}],
    }
    messages = content_of(DIALECTS["messages"].decode_request(json.dumps(body).encode(), {}))
    assert messages == chat(*HISTORY)


def test_a_freeform_call_is_equal_to_the_call_of_a_function() -> None:
    patch = "*** Begin Patch"
    body = {
        "model": "m",
        "input": [user("Do it."), {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": patch}],
        "tools": [{"type": "custom", "name": "patch"}],
    }
    function = {"name": "patch", "arguments": json.dumps({"input": patch})}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "x", "type": "function", "function": function}],
    }
    freeform = content_of(DIALECTS["responses"].decode_request(json.dumps(body).encode(), {}))
    assert freeform.items == chat(user("Do it."), message).items
    assert freeform.tools == ("patch",)


def test_an_instruction_in_a_message_of_the_user_is_an_instruction() -> None:
    noted = chat(user("Hi"), user("<system>\nMind the gap.\n</system>"))
    assert noted == chat(user("Hi"), {"role": "system", "content": "Mind the gap."})
    assert noted.items == chat(user("Hi")).items


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at 2026-11-18T06:00:00Z", "at 2027-01-02 07:11:12.5"),
        ("Today is Wed Nov 18 2026.", "Today is Thu Dec 3 2026."),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-42661417ffff"),
        ("in /tmp/pytest-1/a/notes.txt", "in /tmp/pytest-22/b/c/notes.txt"),
        ("took 0.12 seconds", "took 7 seconds"),
        ("sha 0123456789abcdef0", "sha ffffffffffffffff1"),
        ("Chunk ID: 27d959", "Chunk ID: febaee"),
        ("a  b\n", "a b"),
    ],
)
def test_values_of_one_run_are_equal(first: str, second: str) -> None:
    assert stable_text(first) == stable_text(second)


@pytest.mark.parametrize(
    ("first", "second"), [("in /tmp/x/a.txt", "in /tmp/x/b.txt"), ("18 degrees", "19 degrees"), ("id: 18", "id: 19")]
)
def test_other_values_differ(first: str, second: str) -> None:
    assert stable_text(first) != stable_text(second)


def test_instructions_and_tools_count_only_in_an_exact_match() -> None:
    first, second = chat(user("Hi")), chat(user("Hi"), system="Be long.")
    assert not is_same(first, second, "exact", is_partial=False)
    assert is_same(first, second, "conversation", is_partial=False)
    assert not is_same(first, chat(user("Ho")), "conversation", is_partial=False)


def test_a_partial_request_is_compared_with_the_end() -> None:
    last = chat(HISTORY[2])
    assert is_same(last, chat(*HISTORY), "exact", is_partial=True)
    assert not is_same(chat(user("Weather?")), chat(*HISTORY), "exact", is_partial=True)


def test_the_difference_names_the_message() -> None:
    assert difference(chat(user("Rain in Oslo?")), chat(user("Rain in Rome?"))).startswith(
        "message 1 differs: recorded user "
    )
    assert "only received: call" in difference(chat(user("Weather?")), chat(*HISTORY))
    assert difference(chat(user("Hi")), chat(user("Hi"), system="Be long.")).startswith("the instructions differ")
    without = chat(user("Hi"))._replace(tools=("other",))
    assert difference(chat(user("Hi")), without) == "the tools differ: missing weather, added other"


def test_the_entry_with_the_longest_equal_start_is_the_nearest() -> None:
    received = chat(*HISTORY, user("Thanks"))
    assert (
        likeness(chat(*HISTORY), received)
        > likeness(chat(user("Weather?")), received)
        > likeness(chat(user("No")), received)
    )
