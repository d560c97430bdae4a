"""The member "thread"."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.dialects.messages.thread_in import is_continuing, state_in
from toolwire.errors import BadRequest

CONTINUE = {"type": "continue", "previous_message_id": "msg_1"}


def test_a_thread_is_created_or_continued() -> None:
    created = state_in({"thread": {"type": "create"}, "system": "s"})
    assert created is not None
    assert (created.previous, created.is_kept, created.is_leaning) == ("", True, True)
    continued = state_in({"thread": CONTINUE})
    assert continued is not None
    assert continued.previous == "msg_1"
    assert is_continuing({"thread": CONTINUE})
    assert not is_continuing({"thread": {"type": "create"}})


def test_without_one_nothing_is_asked_of_the_memory() -> None:
    assert state_in({}) is None
    assert state_in({"thread": None}) is None


@pytest.mark.parametrize(
    ("top", "where"),
    [
        ({"thread": "x"}, "thread"),
        ({"thread": {}}, "thread.type"),
        ({"thread": {"type": "fork"}}, "thread.type"),
        ({"thread": {"type": "continue"}}, "thread.previous_message_id"),
        ({"thread": {"type": "continue", "previous_message_id": ""}}, "thread.previous_message_id"),
        ({"thread": CONTINUE, "system": "s"}, "system"),
        ({"thread": CONTINUE, "tools": [{"name": "t"}]}, "tools"),
    ],
)
def test_what_is_wrong_is_named(top: dict[str, Any], where: str) -> None:
    with pytest.raises(BadRequest) as caught:
        state_in(top)
    assert caught.value.where == where
