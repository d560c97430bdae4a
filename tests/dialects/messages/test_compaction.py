"""Compaction in Messages: what a request wants, and the block in a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolwire.dialects.base import AnswerContext
from toolwire.dialects.messages import DIALECT
from toolwire.dialects.messages.compaction import part
from toolwire.errors import BadRequest
from toolwire.events import Finished, PartEnded, PartStarted, Started
from toolwire.types import Choice, Compaction, Opaque, Request

USER = {"role": "user", "content": "hi"}
CLEAR = {"type": "clear_tool_uses_20250919"}


def wanted(**members: Any) -> Compaction | None:
    body = {"model": "m", "max_tokens": 9, "messages": [USER], **members}
    return DIALECT.decode_request(json.dumps(body).encode(), {}).compaction


def edited(**edit: Any) -> Compaction | None:
    return wanted(context_management={"edits": [{"type": "compact_20260112", **edit}]})


def test_what_a_request_wants() -> None:
    block = {"role": "assistant", "content": [{"type": "compaction", "content": "x"}]}
    assert wanted() is None
    assert wanted(messages=[block, USER]) == Compaction(has_items=True)
    assert wanted(compaction={"type": "summarize", "instructions": " "}) == Compaction(is_now=True)
    assert edited() == Compaction(threshold=150_000)
    assert edited(trigger={"type": "input_tokens", "value": 7}, pause_after_compaction=True, instructions="short") == (
        Compaction(threshold=7, pauses=True, instructions="short")
    )
    assert wanted(context_management={"edits": [CLEAR]}) == Compaction(edits=(CLEAR,))
    assert wanted(context_management={"edits": []}) is None
    newer = {"type": "of_a_newer_provider"}
    assert wanted(context_management={"edits": [newer]}) == wanted(compaction=newer) == Compaction(edits=(newer,))


@pytest.mark.parametrize(
    "members",
    [
        {"compaction": {"type": "summarize"}, "context_management": {"edits": []}},
        {"context_management": {"edits": [{"type": "compact_20260112", "trigger": {"value": "many"}}]}},
    ],
)
def test_what_it_cannot_mean_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        wanted(**members)


def test_the_block_has_its_content_in_a_delta() -> None:
    request = DIALECT.decode_request(
        json.dumps({"model": "m", "max_tokens": 9, "messages": [USER], "stream": True}).encode(), {}
    )
    encoder = DIALECT.stream_encoder(AnswerContext(request=request, mint=str, now=1))
    block = part("the summary", "twc1.x", str)
    events = [
        Started(id="1", model="m"),
        PartStarted(index=0, part=block),
        PartEnded(index=0, part=block),
        Finished(choices=(Choice(reason="stop", raw_reason="compaction"),)),
    ]
    wire = b"".join(encoder.send(event) for event in events).decode()
    sent = [json.loads(line.removeprefix("data: ")) for line in wire.splitlines() if line.startswith("data: ")]
    assert sent[1]["content_block"] == {"type": "compaction", "content": None}
    assert sent[2]["delta"] == {
        "type": "compaction_delta",
        "content": "the summary",
        "encrypted_content": "twc1.x",
    }
    assert [one["type"] for one in sent[3:]] == ["content_block_stop", "message_delta", "message_stop"]
    assert sent[4]["delta"]["stop_reason"] == "compaction"


def test_a_block_of_the_provider_is_whole_at_its_end_and_written_as_it_came() -> None:
    request = Request(model="m", messages=(), stream=True, origin="messages")
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    delta = {"type": "compaction_delta", "content": "the summary", "encrypted_content": "of the provider"}
    sent: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "compaction", "content": None}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "compaction", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    wire = b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in sent)
    decoder = DIALECT.stream_decoder(request)
    events = [*decoder.feed(wire), *decoder.close()]
    (ended,) = [event.part for event in events if isinstance(event, PartEnded)]
    assert isinstance(ended, Opaque)
    assert ended.value == {**delta, "type": "compaction"}
    encoder = DIALECT.stream_encoder(AnswerContext(request=request, mint=str, now=1))
    again = b"".join(encoder.send(event) for event in events).decode()
    assert again.count("the summary") == 1
    assert '"stop_reason":"compaction"' in again
