"""tests/order.py: no test is lost, and every worker begins with real programs."""

from __future__ import annotations

from tests.order import LONGEST, PROGRAMS, deal

TESTS = PROGRAMS.parent


def test_every_share_begins_with_whole_files_of_programs() -> None:
    quick = [(number, TESTS / f"calls/test_{number // 10}.py") for number in range(90)]
    real = [(100 + number, PROGRAMS / f"test_{number // 2}.py") for number in range(10)]
    long = [(200 + number, path) for number, path in enumerate(LONGEST)]
    tests = [*quick[:50], *real, *long, *quick[50:]]
    ordered = deal(tests, 4)
    assert sorted(ordered) == sorted(test for test, _ in tests)
    assert [ordered[start] for start in (0, 26, 52, 78)] == [200, 201, 202, 203]
    assert ordered[1:5] == [100, 101, 108, 109]
    assert [test for test in ordered if test < 100] == list(range(90))


def test_without_programs_the_order_stays() -> None:
    tests = [(number, TESTS / "calls/test_a.py") for number in range(11)]
    assert deal(tests, 3) == list(range(11))


def test_more_programs_than_room_are_all_dealt() -> None:
    tests = [(number, PROGRAMS / "test_a.py") for number in range(9)] + [(9, TESTS / "test_b.py")]
    assert sorted(deal(tests, 4)) == list(range(10))
