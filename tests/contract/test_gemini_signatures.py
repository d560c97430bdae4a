"""Gemini's signatures with clients that drop them: the gateway stores and restores what later requests need."""

from __future__ import annotations

import json

import pytest

from tests.dialects.codec_harness import answer_in
from tests.dialects.upstream_events import gemini_call, gemini_chunk
from toolwire.calls.signatures import Needs, pack, restore_reasoning, secrets_of, turns_without_reasoning, unpack
from toolwire.dialects.gemini import encode_request
from toolwire.profiles import GEMINI_API
from toolwire.types import Message, Part, Request, Text, ToolCall, ToolResult

NEEDS = Needs(dialect="gemini", proofs=("encrypted",), is_marked=True, has_members=True)
HI = Message(role="user", parts=(Text(text="hi"),))
RESULTS = Message(role="user", parts=tuple(ToolResult(call_id=one, parts=(Text(text="1"),)) for one in ("a", "b")))


def same(call_id: str) -> str:
    return call_id


def forgetful(parts: tuple[Part, ...]) -> Message:
    """A turn as a client hands it back that knows words and calls, and nothing of Gemini."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, Text):
            kept.append(Text(text=part.text))
        elif isinstance(part, ToolCall):
            kept.append(ToolCall(id=part.id, name=part.name, raw=part.raw, args=part.args))
    return Message(role="assistant", parts=tuple(kept))


@pytest.mark.parametrize("has_thought", [True, False])
def test_H074_signatures_come_back_on_their_own_parts(has_thought: bool) -> None:
    thought = [gemini_chunk({"text": "hm", "thought": True, "thoughtSignature": "QQ=="})] if has_thought else []
    answer = answer_in(
        "gemini",
        *thought,
        gemini_chunk({"text": "I look."}),
        gemini_chunk(gemini_call("a", "f", {}, thoughtSignature="Qg=="), gemini_call("b", "f", {})),
        gemini_chunk(finish="STOP"),
    )
    parts = answer.parts_of(0)
    secrets = secrets_of(parts, NEEDS, same)
    assert secrets is not None
    secrets = unpack(pack(secrets))
    assert secrets is not None
    messages = (HI, forgetful(parts), RESULTS)
    (span,) = turns_without_reasoning(messages, NEEDS)
    again, turns = restore_reasoning(messages, [(span, secrets)], same, is_run=False)
    assert turns == 1
    encoded = encode_request(Request(model="gemini-3-pro", messages=again, origin="chat"), GEMINI_API)
    written = json.loads(encoded.body)["contents"][1]["parts"]
    assert written == [
        *([{"text": "hm", "thought": True, "thoughtSignature": "QQ=="}] if has_thought else []),
        {"text": "I look."},
        {"functionCall": {"id": "a", "name": "f", "args": {}}, "thoughtSignature": "Qg=="},
        {"functionCall": {"id": "b", "name": "f", "args": {}}},
    ]
    assert encoded.losses == ()
