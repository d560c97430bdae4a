"""Instructions in mid-conversation: an effort from there on, and text for one turn."""

from __future__ import annotations

import json
from typing import Any

from tests.pipeline.jobs import prepared
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS
from toolwire.types import Request

USER = {"role": "user", "content": "hi"}
ANSWER = {"role": "assistant", "content": "hello"}
BETA = {"anthropic-beta": "mid-conversation-output-config-2026-07-01"}


def decoded(*messages: dict[str, Any], **members: Any) -> Request:
    body = {"model": "m", "max_tokens": 9, "messages": messages, **members}
    return DIALECTS["messages"].decode_request(json.dumps(body).encode(), BETA)


def sent(request: Request, kind: str, dialect: str) -> tuple[dict[str, Any], list[str]]:
    config = BackendConfig(name="b", kind=kind, base_url="https://host.example")  # type: ignore[arg-type] # one of them
    backend = HttpBackend(config, Transport())
    job = prepared(request, backend)
    encoded = DIALECTS[dialect].encode_request(job.request, backend.profile)
    return json.loads(encoded.body), [loss.feature for loss in (*job.losses, *encoded.losses)]


def test_the_latest_effort_applies() -> None:
    low = {"role": "system", "output_config": {"effort": "low"}}
    high = {"role": "system", "content": "Think.", "output_config": {"effort": "high"}}
    request = decoded(USER, low, ANSWER, USER, high, output_config={"effort": "max"})
    assert request.thinking is not None
    assert request.thinking.effort == "high"
    body, losses = sent(request, "openai-chat", "chat")
    assert body["reasoning_effort"] == "high"
    assert losses == ["role.system"]  # the text of one is a note
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "user"]


def test_its_own_provider_gets_them_unchanged() -> None:
    low = {"role": "system", "output_config": {"effort": "low"}}
    once = {"role": "system", "content": "Only now.", "clear_at": "next_user_message"}
    request = decoded(USER, low, once, ANSWER, USER)
    body, losses = sent(request, "anthropic", "messages")
    assert body["messages"] == [USER, low, once, ANSWER, USER]
    assert losses == []


def test_text_for_one_turn_is_left_out_later() -> None:
    once = {"role": "system", "content": "Only now.", "clear_at": "next_user_message"}
    body, losses = sent(decoded(USER, once), "openai-chat", "chat")
    assert "Only now." in str(body)
    body, _ = sent(decoded(USER, once, ANSWER, USER), "openai-chat", "chat")
    assert "Only now." not in str(body)
    assert "message.clear_at" not in losses
