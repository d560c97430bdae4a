"""Cached histories are shared between requests, so no request may change one. This checks it for every gateway that a test runs in this process."""

from __future__ import annotations

from toolwire.dialects.shared.memory import PastTurns
from toolwire.memory.cache import HistoryCache

violations: list[str] = []


class FrozenRecent(HistoryCache):
    """Compares a history with the cached one whenever it is used, and at the end of the test."""

    used: dict[int, tuple[PastTurns, str]] = {}  # since the last check, of all instances

    def __init__(self) -> None:
        super().__init__()
        self._cached: dict[tuple[str, str], str] = {}

    def put(self, owner: str, answer_id: str, past: PastTurns, size: int) -> None:
        super().put(owner, answer_id, past, size)
        self._note((owner, answer_id), past, repr(past))

    def get(self, owner: str, answer_id: str) -> tuple[PastTurns, int] | None:
        found = super().get(owner, answer_id)
        if found is not None:
            self._note((owner, answer_id), found[0], self._cached[owner, answer_id])
            compare(found[0], self._cached[owner, answer_id])
        return found

    def _note(self, key: tuple[str, str], past: PastTurns, cached: str) -> None:
        self._cached[key] = cached
        self.used[id(past)] = (past, cached)


def compare(past: PastTurns, cached: str) -> None:
    if (now := repr(past)) != cached:
        violations.append(f"a cached history was changed from {cached} to {now}")


def check_used() -> None:
    """Raises AssertionError for the first history that was changed since the last check."""
    for past, cached in list(FrozenRecent.used.values()):
        compare(past, cached)
    FrozenRecent.used.clear()
    found = violations[:1]
    violations.clear()
    assert not found, found[0]
