"""What a decoder knows beforehand."""

from __future__ import annotations

from tests.backends.cursor.wire.lending import fits
from tests.backends.cursor.wire.saying import WEATHER, opening
from toolwire.backends.cursor.wire import Outlook, Reply
from toolwire.types import Tool


def test_a_client_with_tools_gets_nothing_done_here() -> None:
    local = frozenset({"read"})
    assert Outlook(model="m", opening=opening([]), mint=str, fits=fits, local=local).own_kinds == local
    assert Outlook(model="m", opening=opening([WEATHER]), mint=str, fits=fits, local=local).own_kinds == frozenset()


def test_tools_are_named_as_the_model_reads_them() -> None:
    outlook = Outlook(model="m", opening=opening([WEATHER, Tool(name="read")]), mint=str, fits=fits)
    assert outlook.tool_names() == ["weather", outlook.opening.names.wire("read")]
    assert outlook.tool_names()[1] != "read"


def test_replies_share_nothing() -> None:
    first = Reply()
    first.send.append(b"x")
    assert Reply().send == []
