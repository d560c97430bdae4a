"""Which call a fragment belongs to, and when a call is complete."""

from __future__ import annotations

import pytest

from toolwire.dialects.chat.open_calls import OpenCall, OpenCalls
from toolwire.dialects.chat.shapes import CallDelta, FunctionDelta
from toolwire.dialects.shared.answer_in import Assembly


def opened(calls: OpenCalls, name: str, raw: str, index: int | None = 0, call_id: str | None = None) -> OpenCall:
    fragment = CallDelta(index=index, id=call_id)
    found = calls.begin(fragment, name)
    calls.note(fragment, found)
    if raw:
        found.add(raw)
    return found


@pytest.mark.parametrize("raw", ["", " ", "{", '{"a":"}', '{"a":1}{', "[1]", "null", "}", '{"a":1}}', "{'a':1}"])
def test_what_is_no_object_is_never_whole(raw: str) -> None:
    call = OpenCall("x", "f", is_custom=False)
    for letter in raw:
        call.add(letter)
    assert not call.is_whole


def test_a_fragment_is_placed_by_id_then_by_index_then_as_the_last() -> None:
    calls = OpenCalls()
    first = opened(calls, "f", '{"a"', 0, "x")
    second = opened(calls, "f", '{"b"', 1, "y")
    assert calls.find(CallDelta(id="x"), "") is first
    assert calls.find(CallDelta(index=1), "") is second
    assert calls.find(CallDelta(), "") is second
    assert calls.find(CallDelta(index=7, id="z"), "f") is None
    assert calls.find(CallDelta(index=7), "") is second
    assert calls.find(CallDelta(index=7), "f") is None


def test_H015_H049_a_header_on_a_whole_call_is_a_copy_or_another_call() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", '{"a": 1}', 0, "x")
    again = CallDelta(index=0, id="x")
    for raw, is_copy in (('{"a":1}', True), ('{"a":2}', False)):
        doubted = calls.doubt(again, "f", known)
        calls.note(again, doubted)
        doubted.add(raw[:3])
        assert calls.resolve(doubted) is None
        assert calls.find(CallDelta(index=0), "") is doubted
        doubted.add(raw[3:])
        assert (calls.resolve(doubted) is None) == is_copy
        assert calls.find(CallDelta(index=0), "") is (known if is_copy else doubted)
    assert [call.value for call in calls.all] == [{"a": 1}, {"a": 2}]


def test_a_header_in_the_middle_of_a_call_continues_it() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", '{"a"', 0, "x")
    assert calls.find(CallDelta(index=0, id="y"), "f") is known
    assert calls.find(CallDelta(index=0, id="y"), "g") is None
    known.add(":1}")
    assert calls.find(CallDelta(index=0, id="y"), "f") is None


def test_a_new_id_in_the_middle_of_a_call() -> None:
    """A server that makes an id for each fragment, and one that has begun another call under the same index."""
    for begun, fragment, is_same in (
        ('{"a"', ":1}", True),
        ('{"a"', '{"b"', False),
    ):
        calls = OpenCalls()
        known = opened(calls, "f", begun, 0, "x")
        header = CallDelta(index=0, id="y", function=FunctionDelta(name="f", arguments=fragment))
        assert (calls.find(header, "f") is known) == is_same


def test_ids_that_were_repeated_are_not_made_for_each_fragment() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", '{"a"', 0, "x")
    calls.note(CallDelta(index=0, id="x"), known)
    assert calls.find(CallDelta(index=0, id="y", function=FunctionDelta(name="f", arguments=":")), "f") is None


def test_another_name_under_the_index_of_a_call_that_has_started_is_another_call() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", "", 0)
    assert calls.find(CallDelta(index=0), "g") is known
    growing, _ = Assembly().start(known.opening())
    assert known.start(growing) == []
    assert calls.find(CallDelta(index=0), "f") is known
    assert calls.find(CallDelta(index=0), "g") is None


def test_what_came_before_the_start_comes_out_at_the_start() -> None:
    call = OpenCall("x", "f", is_custom=False)
    for piece in ('{"a"', ":1"):
        call.add(piece)
    assert call.growing is None
    growing, _ = Assembly().start(call.opening())
    assert [delta.text for delta in call.start(growing)] == ['{"a"', ":1"]
    assert call.growing is growing
    growing.grow("}")
    assert call.value == {"a": 1}
    assert not call.is_blank


def test_free_text_has_no_value() -> None:
    call = OpenCall("x", "f", is_custom=True)
    call.add('{"a":1}')
    assert call.value is None
    assert not call.is_blank
    assert call.opening().kind == "custom"
