from __future__ import annotations

from tests.calls.telling import user
from toolwire.calls.ledger.report import Placed


def test_a_message_keeps_its_place_when_it_is_written_anew() -> None:
    line = Placed(3, user("hi"))
    assert line.where == "messages[3]"
    assert line.having(user("there")).where == "messages[3]"
