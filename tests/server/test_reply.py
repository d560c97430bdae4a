"""Heads, errors and the headers that go with an answer."""

from __future__ import annotations

from toolwire.errors import UpstreamError
from toolwire.server.reply import loss_header, passed_headers
from toolwire.types import Loss


def test_the_loss_header_is_bounded_and_counts() -> None:
    (header,) = loss_header([Loss(f"feature.{number % 90}", "", "") for number in range(500)])
    assert len(header[1]) <= 1000
    assert loss_header([Loss("a", "", ""), Loss("a", "", ""), Loss("b", "", "")]) == [(b"x-toolwire-loss", b"a;n=2, b")]
    both = [Loss("role.system", "", ""), Loss("a", "", ""), Loss("history.order", "", "")]
    assert loss_header(both) == [
        (b"x-toolwire-loss", b"role.system, a, history.order"),
        (b"x-toolwire-adapted", b"role.system, history.order"),
    ]
    assert loss_header([]) == []


def test_the_back_ends_request_id_keeps_apart_from_ours() -> None:
    found = passed_headers(UpstreamError("x", headers={"x-request-id": "theirs", "retry-after": "3"}).headers)
    assert found == [(b"x-upstream-x-request-id", b"theirs"), (b"retry-after", b"3")]
