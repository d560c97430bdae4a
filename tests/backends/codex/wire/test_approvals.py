"""Requests of the server's own: nothing is approved, and nothing stays without an answer."""

from __future__ import annotations

import pytest

from toolwire.backends.codex.wire.approvals import DECLINED, decline, refuse_call
from toolwire.wire.json_rpc import RpcRequest


@pytest.mark.parametrize("method", sorted(DECLINED))
def test_what_codex_may_ask_for_is_declined(method: str) -> None:
    assert decline(RpcRequest(id=3, method=method)) == {"id": 3, "result": DECLINED[method]}
    assert not {"accept", "approved", "approve"} & set(map(str, DECLINED[method].values()))


@pytest.mark.parametrize("method", ["account/chatgptAuthTokens/refresh", "no/such", "x" * 5000])
def test_what_is_not_known_is_refused_by_an_error(method: str) -> None:
    message = decline(RpcRequest(id="a", method=method))
    assert message["id"] == "a"
    assert message["error"]["code"] == -32601
    assert len(message["error"]["message"]) < 300


def test_a_call_of_another_turn_is_refused() -> None:
    assert "error" in refuse_call(0)
