"""Answers of one connection: bounded, evicted by failures of their own lane only."""

from __future__ import annotations

from toolwire.dialects.shared.memory import PastTurns
from toolwire.memory.answers import AnswerMemory
from toolwire.memory.connection import ConnectionMemory, LaneMemory
from toolwire.memory.store import open_store


def connection(max_bytes: int = 1000) -> ConnectionMemory:
    store = open_store(kind="memory", path="", default_path="", max_age_days=1, max_mb=1).store
    return ConnectionMemory(AnswerMemory(store, (), is_shared=False), max_bytes)


def test_the_oldest_answers_are_evicted_when_there_are_too_many_bytes() -> None:
    memory = connection()
    for number in range(4):
        memory.put(f"resp_{number}", PastTurns(), 400, "")
    assert [memory.get(f"resp_{number}") is not None for number in range(4)] == [False, False, True, True]


def test_a_history_that_is_too_large_is_not_stored() -> None:
    memory = connection()
    memory.put("resp_1", PastTurns(), 400, "")
    memory.put("resp_2", PastTurns(), 1001, "")
    assert memory.get("resp_1") is not None
    assert memory.get("resp_2") is None


def test_the_number_of_answers_is_bounded() -> None:
    memory = connection()
    for number in range(65):
        memory.put(f"resp_{number}", PastTurns(), 0, "")
    assert memory.get("resp_0") is None
    assert memory.get("resp_1") is not None


def test_a_failure_evicts_an_answer_of_its_own_lane() -> None:
    memory = connection()
    first, other = LaneMemory(memory, "a"), LaneMemory(memory, "b")
    first.remember("resp_1", PastTurns(), 1)
    other.failed("resp_1")
    assert memory.get("resp_1") is not None
    first.failed("resp_1")
    assert memory.get("resp_1") is None
