"""What is kept for the next answer: in order, without what was aborted, and bounded."""

from __future__ import annotations

import pytest

from toolwire.backends.cursor.wire.answer import unread_output as keeping
from toolwire.backends.cursor.wire.answer.unread_output import Kept, Said
from toolwire.backends.cursor.wire.execs import Exec


def exec(number: int, data: bytes = b"") -> Said:
    return Said("exec", Exec(number, f"e{number}", "read", None), data)


def drained(kept: Kept) -> list[Said]:
    found: list[Said] = []
    while kept:
        if kept.is_wanted(kept.first):
            found.append(kept.first)
        kept.drop_first()
    return found


def test_order_is_kept() -> None:
    kept, said = Kept(), [Said("text_delta", "a", b""), exec(1), Said("text_delta", "b", b""), exec(2)]
    assert all(kept.add(one) for one in said)
    assert list(kept.execs) == [(1, "e1"), (2, "e2")]
    assert drained(kept) == said
    assert not kept.execs


def test_what_was_aborted_is_no_longer_wanted() -> None:
    kept, said = Kept(), [exec(1), exec(2), Said("text_delta", "a", b"")]
    for one in said:
        kept.add(one)
    kept.abort(1)
    kept.abort(7)
    assert list(kept.execs) == [(2, "e2")]
    assert drained(kept) == said[1:]


def test_bytes_are_bounded_and_room_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_BYTES", 3000)
    kept = Kept()
    assert kept.add(Said("text_delta", "", b"x" * 1000))
    drained(kept)
    assert kept.add(Said("text_delta", "", b"x" * 2400))
    assert not kept.add(Said("text_delta", "", b""))


def test_execs_are_bounded() -> None:
    kept = Kept()
    assert [kept.add(exec(number)) for number in range(keeping.MOST_EXECS + 1)][-2:] == [True, False]
