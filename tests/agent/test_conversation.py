"""Conversations as data: nothing is lost on the way to a file and back, and no model gets another's thoughts."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from toolwire import Conversation
from toolwire.agent.conversation import for_model, mark_model
from toolwire.errors import BadRequest
from toolwire.types import Media, Message, Opaque, Reasoning, Refusal, Source, Text, ToolCall, ToolResult

CALL = ToolCall(
    id="c1",
    name="f",
    raw='{"x": 0.10}',
    args={"x": Decimal("0.10"), "big": 2**80},
    item_id="fc_1",
    extra={"gemini": {"s": 1}},
)
TURNS = (
    Message(
        role="user",
        parts=(Text(text="é \ud800 \x00"), Media(kind="image", data="QQ==")),
        source=Source("chat", {"a": 1}),
    ),
    Message(
        role="assistant",
        parts=(
            Reasoning(text="Hm", signature="sig", item_id="rs_1"),
            Text(text="So", item_id="msg_1", extra={"gemini": {"thoughtSignature": "s"}}),
            Refusal(text="No"),
            Opaque(dialect="chat", value={"type": "odd"}),
            CALL,
        ),
        extra={"chat": {"reasoning_details": {}}},
    ),
    Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text="1"),), is_error=True, name="f"),)),
)


def without_source(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(Message(role=m.role, parts=m.parts, is_head=m.is_head, extra=m.extra) for m in messages)


def test_a_file_and_back(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    Conversation(messages=TURNS, model="a/m").save(path)
    loaded = Conversation.load(path)
    assert loaded == Conversation(messages=without_source(TURNS), model="a/m")
    assert [file.name for file in tmp_path.iterdir()] == ["talk.json"]
    assert b'"x":0.10' in path.read_bytes()


def test_plain_data_goes_through_any_json() -> None:
    conversation = Conversation(messages=TURNS[1:2], model="a/m")
    data = json.loads(json.dumps(conversation.to_data(), default=float))
    (loaded,) = Conversation.from_data(data).messages
    assert [type(part) for part in loaded.parts] == [type(part) for part in TURNS[1].parts]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[1]", "expected a JSON object"),
        (b"{}", "version None; expected 1"),
        (b'{"version": 2, "messages": []}', "version 2; expected 1"),
        (b'{"version": 1}', "is no conversation"),
        (b'{"version": 1, "messages": 3}', "is no conversation"),
        (b'{"version": 1, "messages": [{"role": "king", "parts": []}]}', "is no conversation"),
        (b'{"version": 1, "messages": [{"role": "user", "parts": [{"type": "?"}]}]}', "is no conversation"),
        (b"[" * 100_000, "is no JSON"),
    ],
)
def test_invalid_conversations_are_refused(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "talk.json"
    path.write_bytes(text)
    with pytest.raises(BadRequest, match=words):
        Conversation.load(path)


def test_the_old_file_stays_where_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    Conversation(messages=TURNS, model="a/m").save(path)
    before = path.read_bytes()
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    broken = Conversation(messages=(Message(role="user", parts=(Opaque(dialect="x", value=deep),)),))
    with pytest.raises((RecursionError, ValueError)):
        broken.save(path)
    assert path.read_bytes() == before


def test_turns_of_another_model_come_without_what_is_its_own() -> None:
    talk = mark_model(without_source(TURNS), "a/m", 0)
    assert for_model(talk, "a/m") == talk
    _, said, result = for_model(talk, "b/m")
    assert [type(part) for part in said.parts] == [Text, Refusal, Opaque, ToolCall]
    text, _, _, call = said.parts
    assert text == Text(text="So")
    assert isinstance(call, ToolCall)
    assert (call.id, call.raw, call.item_id, call.extra) == ("c1", '{"x": 0.10}', "", {})
    assert said.extra == {}
    assert result == talk[2]


def test_only_new_turns_are_marked() -> None:
    talk = mark_model(TURNS + TURNS[1:2], "a/m", 2)
    assert "toolwire" not in talk[1].extra
    assert talk[3].extra["toolwire"] == {"model": "a/m"}
    assert talk[3].extra["chat"] == {"reasoning_details": {}}


def test_turns_without_a_mark_are_unchanged() -> None:
    assert for_model(TURNS, "b/m") == TURNS
