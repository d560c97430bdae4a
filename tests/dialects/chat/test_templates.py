"""Plainer words for servers whose template refuses a request: what is meant stays, its form changes, and only once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.chat.templates import with_plain_roles, with_texts

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"n": 12345678901234567890123}'}}
USER = {"role": "user", "content": "hi"}
TURN = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}
FIRST = {"role": "system", "content": "a", "name": "n"}


def system(text: Any) -> dict[str, Any]:
    return {"role": "system", "content": text}


def note(text: str) -> str:
    return f"<system>\n{text}\n</system>"


def changed(change: Any, *messages: Any) -> Any:
    """The messages afterwards, None where nothing changed; what was changed stays so."""
    body = change(json.dumps({"model": "m", "messages": list(messages), "seed": 7}).encode())
    if body is None:
        return None
    assert change(body) is None
    top = json.loads(body)
    assert (top["model"], top["seed"]) == ("m", 7)
    return top["messages"]


def test_H111_null_becomes_an_empty_text_for_assistants_alone() -> None:
    bare = {"role": "assistant", "tool_calls": [CALL]}
    said = {"role": "assistant", "content": "a", "tool_calls": [CALL]}
    found = changed(with_texts, USER, TURN, RESULT, bare, said)
    assert [message.get("content") for message in found] == ["hi", "", "r", "", "a"]
    assert found[1]["tool_calls"] == [CALL]
    assert changed(with_texts, USER, said, {"role": "user", "content": None}) is None


def test_H112_instructions_become_one_at_the_start() -> None:
    found = changed(with_plain_roles, FIRST, {"role": "developer", "content": [{"type": "text", "text": "b"}]}, USER)
    assert found == [{"role": "system", "content": "a\n\nb", "name": "n"}, USER]
    assert changed(with_plain_roles, FIRST, USER, TURN, RESULT) is None


def test_H141_a_developer_alone_becomes_the_system() -> None:
    assert changed(with_plain_roles, {"role": "developer", "content": "d"}, USER) == [system("d"), USER]


def test_H112_later_instructions_are_notes_and_part_no_call_from_its_result() -> None:
    found = changed(with_plain_roles, USER, TURN, system("x"), RESULT, system("y"), USER)
    assert found == [USER, TURN, RESULT, {"role": "user", "content": f"{note('x')}\n\n{note('y')}\n\nhi"}]
    parts = {"role": "user", "content": [{"type": "text", "text": "p"}]}
    (_, last) = changed(with_plain_roles, USER, system("x"), parts)
    assert [part["text"] for part in last["content"]] == [note("x"), "p"]
    answer = {"role": "assistant", "content": "ok"}
    assert changed(with_plain_roles, USER, system("x"), answer, system("y")) == [
        USER, {"role": "user", "content": note("x")}, answer, {"role": "user", "content": note("y")},
    ]  # fmt: skip


def test_H112_a_late_instruction_becomes_the_user_message() -> None:
    assert changed(with_plain_roles, FIRST, system("go")) == [FIRST, {"role": "user", "content": "go"}]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"messages":1}', b'{"messages":[1]}', b'{"messages":[]}'])
@pytest.mark.parametrize("change", [with_texts, with_plain_roles])
def test_what_is_no_conversation_is_left_alone(change: Any, body: bytes) -> None:
    assert change(body) is None
