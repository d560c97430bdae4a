"""One error tree: who must act decides the class, and foreign text never runs wild in a message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.garbage import held_by_cycles
from toolwire.backends.http.connection import StaleConnection
from toolwire.errors import (
    BadRequest,
    ConfigError,
    GatewayError,
    InternalError,
    UpstreamError,
    drop_tracebacks,
    quote,
)


@pytest.mark.parametrize(
    ("kind", "status", "code"),
    [
        (BadRequest, 400, "invalid_request"),
        (UpstreamError, 502, "upstream_error"),
        (ConfigError, 500, "config_error"),
        (InternalError, 500, "internal_error"),
    ],
)
def test_each_class_has_its_status_and_code(kind: type[GatewayError], status: int, code: str) -> None:
    error = kind("x")
    assert (error.status, error.code, str(error)) == (status, code, "x")
    other = kind("x", status=418, code="y")
    assert (other.status, other.code, kind.status) == (418, "y", status)


def test_the_full_message_has_all_parts() -> None:
    assert BadRequest("it is missing.", where="model", hint="Send one.").sentence() == "model: it is missing. Send one."
    assert BadRequest("no.").sentence() == "no."


def test_what_is_handed_in_is_copied() -> None:
    details, headers = {"a": 1}, {"retry-after": "5"}
    error = UpstreamError("x", details=details, headers=headers)
    details.clear()
    headers.clear()
    assert (error.details, error.headers, error.retryable) == ({"a": 1}, {"retry-after": "5"}, False)


@given(st.text(max_size=400))
def test_quoted_text_is_bounded_and_tame(text: str) -> None:
    shown = quote(text)
    assert len(shown) <= 205
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in shown)
    shown.encode("utf-8")


def test_quotes() -> None:
    assert quote("a\nb\ud800") == '"a\\u000ab\\ud800"'
    assert quote("x" * 200) == '"' + "x" * 200 + '"'
    assert quote("x" * 201) == '"' + "x" * 200 + '..."'
    assert quote(["a"]) == "\"['a']\""


def test_what_nests_too_deep_to_be_shown_is_not_shown() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert quote(deep) == '"..."'


def test_a_fresh_error_is_equal_in_all_but_its_traceback() -> None:
    stored = StaleConnection("cut", "it was cut.", sent=True)
    stored.headers["retry-after"] = "5"
    with pytest.raises(StaleConnection) as raised:
        raise stored.fresh()
    assert stored.__traceback__ is None
    assert raised.value is not stored
    assert (raised.value.args, raised.value.__dict__) == (stored.args, stored.__dict__)


def test_a_fresh_error_keeps_its_cause() -> None:
    stored = InternalError("x")
    stored.__cause__ = ZeroDivisionError()
    assert stored.fresh().__cause__ is stored.__cause__


def test_without_tracebacks_an_error_holds_no_frame() -> None:
    def fails() -> None:
        kept = InternalError("ours")
        try:
            raise ZeroDivisionError
        except ZeroDivisionError as error:
            kept.__cause__ = error
            raise kept from error

    def handled(*, is_dropped: bool) -> None:
        try:
            fails()
        except InternalError as error:
            if is_dropped:
                drop_tracebacks(error)

    assert held_by_cycles(lambda: handled(is_dropped=False)) != []
    assert held_by_cycles(lambda: handled(is_dropped=True)) == []
