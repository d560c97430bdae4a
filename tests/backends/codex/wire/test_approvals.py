"""Requests of the server's own: nothing is approved, and nothing stays without an answer."""

from __future__ import annotations

import pytest

from toolwire.backends.codex.wire.approvals import DECLINED, ServerRequestReply, declined, stray


@pytest.mark.parametrize("method", sorted(DECLINED))
def test_what_codex_may_ask_for_is_declined(method: str) -> None:
    reply = declined(method)
    assert reply.message(3) == {"id": 3, "result": DECLINED[method]}
    assert not reply.is_held
    assert not {"accept", "approved", "approve"} & set(map(str, DECLINED[method].values()))


@pytest.mark.parametrize("method", ["account/chatgptAuthTokens/refresh", "no/such", "x" * 5000])
def test_what_is_not_known_is_refused_by_an_error(method: str) -> None:
    message = declined(method).message("a")
    assert message is not None
    assert message["id"] == "a"
    assert message["error"]["code"] == -32601
    assert len(message["error"]["message"]) < 300


def test_a_call_that_waits_has_no_answer_yet() -> None:
    assert ServerRequestReply().is_held
    assert ServerRequestReply().message(0) is None


def test_a_call_that_nobody_waits_for_is_refused() -> None:
    assert "error" in (stray().message(0) or {})
