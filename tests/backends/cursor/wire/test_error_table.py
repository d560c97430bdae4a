"""The table of faults: its names are those of the schema, and each kind says enough to act upon."""

from __future__ import annotations

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.error_table import (
    BARE,
    BY_CODE,
    BY_NAME,
    BY_STATUS,
    BY_WORDS,
    CUT,
    OUTDATED,
    POLICY,
    UNKNOWN,
)

KINDS = [*BY_NAME.values(), *BY_CODE.values(), *BY_STATUS.values(), *(kind for _, kind in BY_WORDS)]
KINDS += [BARE, CUT, OUTDATED, POLICY, UNKNOWN]


def test_every_name_is_one_of_the_schema() -> None:
    assert set(BY_NAME) <= set(agent.ErrorDetails_Error.keys())


def test_what_is_final_is_not_tried_again() -> None:
    assert not [kind for kind in KINDS if kind.is_final and kind.is_retryable]


def test_what_the_owner_can_mend_comes_with_a_hint() -> None:
    assert not [kind for kind in KINDS if kind.status in (401, 404, 426) and kind.code != "not_found" and not kind.hint]
    assert all(400 <= kind.status < 600 and not kind.what.endswith(".") for kind in KINDS)


def test_only_limits_are_limits() -> None:
    assert {kind.code for kind in KINDS if kind.status == 429} == {"rate_limited", "insufficient_quota"}
    assert OUTDATED.status != 429
    assert not OUTDATED.is_retryable
