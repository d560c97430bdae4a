"""The numbers of one answer's calls."""

from __future__ import annotations

from toolwire.calls.tally import Tally


def test_what_is_neither_wrong_nor_unknown_nor_cut_was_accepted() -> None:
    assert Tally(made=10, invalid=4, repaired=3, unknown=2, cut=1).accepted == 3


def test_two_answers_share_no_numbers() -> None:
    first, second = Tally(), Tally()
    first.repairs["typed"] += 1
    assert not second.repairs
    assert second.accepted == 0
