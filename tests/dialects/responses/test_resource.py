"""The response object: every member there, what was asked for echoed, what the back end says on top."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dialects.playing import NOW, asking, minting
from toolwire.dialects.base import Context
from toolwire.dialects.responses.resource import (
    call_item,
    failed,
    is_plain_thought,
    logprobs_out,
    reasoning_item,
    resource,
    text_part,
)
from toolwire.dialects.shared.sealed_reasoning import unseal
from toolwire.errors import BadRequest, GatewayError, UpstreamError
from toolwire.events import Started
from toolwire.types import Citation, JsonObject, Reasoning, Refusal, Text, ToolCall


def made(started: Started, **members: Any) -> JsonObject:
    return resource(Context(request=asking("responses", **members), mint=minting(), now=NOW), started)


def test_what_was_asked_for_is_echoed() -> None:
    tools = [{"type": "function", "name": "f"}, {"type": "web_search"}]
    value = made(
        Started(id="x", model="up"),
        temperature=0.5,
        tools=tools,
        text={"verbosity": "low"},
        reasoning={"effort": "high"},
        user="u",
        metadata=None,
    )
    assert float(value["temperature"]) == 0.5
    assert value["tools"] == [
        {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None},
        {"type": "web_search"},
    ]
    assert value["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    assert value["reasoning"] == {"effort": "high", "summary": None}
    assert (value["user"], value["metadata"], value["status"]) == ("u", {}, "in_progress")
    assert value["id"].startswith("resp_")
    assert (value["model"], value["created_at"]) == ("m", NOW)


def test_an_own_back_end_speaks_for_itself() -> None:
    value = made(
        Started(
            id="resp_9", model="real", created=5, extra={"responses": {"service_tier": "flex", "x": 1, "user": None}}
        )
    )
    assert (value["id"], value["model"], value["created_at"], value["service_tier"], value["x"]) == (
        "resp_9",
        "real",
        5,
        "flex",
        1,
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UpstreamError("x", status=400, code="context_length_exceeded"), "context_length_exceeded"),
        (UpstreamError("x", status=400, details={"code": "context_length_exceeded"}), "context_length_exceeded"),
        (UpstreamError("x", status=429), "rate_limit_exceeded"),
        (UpstreamError("x", status=500, details={"code": ["odd"]}), "server_error"),
        (UpstreamError("x"), "server_error"),
        (BadRequest("x"), "invalid_prompt"),
    ],
)
def test_H146_codes_that_clients_know(error: GatewayError, code: str) -> None:
    assert failed(error) == {"code": code, "message": "x"}


def test_items() -> None:
    assert call_item(ToolCall(id="c", name="f", raw="{}", extra={"responses": {"x": 1}}), "fc_1", "completed")["x"] == 1
    own = Reasoning(text="raw", extra={"responses": {}})
    assert is_plain_thought(own)
    assert not is_plain_thought(Reasoning(text="foreign"))
    assert reasoning_item("rs", [own, Reasoning(text="told", encrypted="e")]) == {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "told"}],
        "content": [{"type": "reasoning_text", "text": "raw"}],
        "encrypted_content": "e",
    }


def test_parts_of_a_message() -> None:
    assert text_part(Refusal(text="no")) == {"type": "refusal", "refusal": "no"}
    value = text_part(Text(text="a", citations=(Citation(url="https://a"), Citation(title="no address"))))
    assert len(value["annotations"]) == 1
    assert logprobs_out(({"token": "a"}, 5)) == [{"bytes": [], "top_logprobs": [], "token": "a"}]


def test_H074_a_proof_of_another_dialect_is_sealed() -> None:
    own = reasoning_item("rs_1", [Reasoning(text="hm", encrypted="ZW5j", extra={"responses": {}})])
    assert own["encrypted_content"] == "ZW5j"
    foreign = Reasoning(text="hm", encrypted="ZW5j", extra={"gemini": {}})
    sealed = reasoning_item("rs_1", [foreign])["encrypted_content"]
    assert unseal(sealed, ["hm"]) == [foreign]
