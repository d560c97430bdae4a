"""What proves a thought to its back end, carried through clients that know nothing of it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.codec_harness import make_request, out
from toolwire.dialects import DIALECTS
from toolwire.dialects.shared.sealed_reasoning import MARK, is_sealed, seal, unseal
from toolwire.events import Event, Finished, PartDelta, PartEnded, PartStarted, Started, emptied
from toolwire.profiles import ANTHROPIC, RESPONSES
from toolwire.types import Choice, Reasoning, Request, ToolCall, Usage

words = st.text(max_size=8)
thoughts = st.builds(
    Reasoning,
    text=words,
    signature=st.none() | st.text(min_size=1, max_size=8),
    encrypted=st.none() | st.text(min_size=1, max_size=8),
    item_id=words,
    is_summary=st.booleans(),
    extra=st.sampled_from([{}, {"responses": {}}, {"chat": {}}]),
)
CALL = ToolCall(id="call_1", name="f", raw="{}", args={})


@given(st.lists(thoughts, max_size=4))
def test_what_was_sealed_comes_back(parts: list[Reasoning]) -> None:
    assert unseal(seal(parts), [part.text for part in parts if part.text]) == parts


def test_texts_that_do_not_match_come_back_alone() -> None:
    assert unseal(seal([Reasoning(text="a", signature="s")]), ["a", "b"]) == [Reasoning(text="a"), Reasoning(text="b")]


@pytest.mark.parametrize("inner", [b"", b"x", b"{}", b"[5]", b"\xff", b'[{"t": true, "s": 5, "d": [5], "e": {}}]'])
def test_a_forged_seal_proves_nothing(inner: bytes) -> None:
    forged = MARK + b64encode(inner).decode()
    assert [part.signature for part in unseal(forged, ["hm"])] == [None]
    for dialect, body in (
        ("messages", {"messages": [{"role": "assistant", "content": [thinking("hm", forged), thinking("", forged)]}]}),
        ("responses", {"input": [{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": forged}]}),
    ):
        assert make_request(dialect, **body).wire == b""


def thinking(text: str, signature: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature}


def answer(*parts: Any) -> list[Event]:
    events: list[Event] = [Started(id="", model="m")]
    for index, part in enumerate((*parts, CALL)):
        events.append(PartStarted(index=index, part=emptied(part)))
        if text := getattr(part, "text", "") or getattr(part, "raw", ""):
            events.append(PartDelta(index, text))
        events.append(PartEnded(index=index, part=part))
    return [*events, Finished(choices=(Choice(reason="tool_calls"),), usage=Usage(input=1, output=1))]


def whole(dialect: str, events: list[Event]) -> Any:
    return json.loads(out(dialect, events, make_request(dialect, is_stream=False)))


def next_messages(blocks: list[Any], **members: Any) -> Request:
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "ok"}
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]
    return make_request("messages", messages=history, **members)


def next_responses(items: list[Any], **members: Any) -> Request:
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    return make_request("responses", input=[{"role": "user", "content": "hi"}, *items, result], **members)


def sent(request: Request, dialect: str) -> Any:
    profile = ANTHROPIC if dialect == "messages" else RESPONSES
    return json.loads(DIALECTS[dialect].encode_request(request, profile).body)


def test_H075_a_signature_survives_a_responses_client() -> None:
    items = whole("responses", answer(Reasoning(text="é中😀", signature="c2ln"), Reasoning(text="", signature="Mg==")))
    tool = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    request = next_responses(items["output"], tools=[tool], reasoning={"effort": "high"})
    assert request.wire == b""
    body = sent(request, "messages")
    assert body["messages"][1]["content"][:2] == [thinking("é中😀", "c2ln"), thinking("", "Mg==")]
    assert body["thinking"]["type"] == "enabled"


def test_encrypted_reasoning_survives_a_messages_client() -> None:
    own = {"responses": {}}
    parts = (
        Reasoning(text="a", item_id="rs_1", is_summary=True, extra=own),
        Reasoning(text="b", item_id="rs_1", is_summary=True, encrypted="ZW5j", extra=own),
    )
    content = whole("messages", answer(*parts))["content"]
    assert all(is_sealed(block["signature"]) for block in content[:2])
    items = sent(next_messages(content), "responses")["input"]
    assert items[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
        "encrypted_content": "ZW5j",
    }


def test_H076_a_seal_never_reaches_a_back_end() -> None:
    content = whole("messages", answer(Reasoning(text="hm", extra={"chat": {}})))["content"]
    body = DIALECTS["messages"].encode_request(next_messages(content), ANTHROPIC)
    assert MARK.encode() not in body.body
    assert [loss.feature for loss in body.losses] == ["reasoning"]
    items = whole("responses", answer(Reasoning(text="hm", signature="c2ln")))["output"]
    assert MARK.encode() not in DIALECTS["responses"].encode_request(next_responses(items), RESPONSES).body


def test_a_thought_of_a_stream_is_sealed_at_its_end() -> None:
    data = out("messages", answer(Reasoning(text="hm", extra={"chat": {}}))).decode()
    assert data.count("signature_delta") == 1
    assert data.index("thinking_delta") < data.index(MARK) < data.index("content_block_stop")
