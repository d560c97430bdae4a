"""Which call a fragment belongs to, and when a call is complete."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.playing import pieces
from toolwire.dialects.chat.open_calls import Balance, OpenCall, OpenCalls
from toolwire.dialects.chat.shapes import Call

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[]\n é'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\}'), inner, max_size=3),
)


def opened(calls: OpenCalls, name: str, raw: str, index: int | None = 0, call_id: str | None = None) -> OpenCall:
    fragment = Call(index=index, id=call_id)
    found = calls.begin(fragment, name)
    calls.note(fragment, found)
    found.add(raw)
    return found


@given(st.dictionaries(st.text(alphabet='k"\\}'), JSON, max_size=3), st.lists(st.integers(0, 200), max_size=6))
def test_an_object_is_closed_at_its_last_character_however_it_is_cut(value: object, cuts: list[int]) -> None:
    text = json.dumps(value)
    balance = Balance()
    for piece in pieces(text.encode(), [min(cut, len(text)) for cut in cuts]):
        assert not balance.is_closed or not piece
        balance.read(piece.decode())
    assert balance.is_closed
    assert not balance.is_spoilt
    balance.read(" \n")
    assert not balance.is_spoilt
    balance.read(",")
    assert balance.is_spoilt


@pytest.mark.parametrize("raw", ["", " ", "{", '{"a":"}', '{"a":1}{', "[1]", "null", "}", '{"a":1}}', "{'a':1}"])
def test_what_is_no_object_is_never_whole(raw: str) -> None:
    call = OpenCall("x", "f", is_custom=False)
    for letter in raw:
        call.add(letter)
    assert not call.is_whole


def test_asking_after_each_fragment_costs_linear_work() -> None:
    call = OpenCall("x", "f", is_custom=False)
    call.add('{"a":"')
    began = time.perf_counter()
    for _ in range(30_000):
        call.add("}}}}")
        assert not call.is_whole
    assert time.perf_counter() - began < 2.0


def test_a_fragment_is_placed_by_id_then_by_index_then_as_the_last() -> None:
    calls = OpenCalls()
    first = opened(calls, "f", '{"a"', 0, "x")
    second = opened(calls, "f", '{"b"', 1, "y")
    assert calls.find(Call(id="x"), "") is first
    assert calls.find(Call(index=1), "") is second
    assert calls.find(Call(), "") is second
    assert calls.find(Call(index=7, id="z"), "f") is None
    assert calls.find(Call(index=7), "") is second


def test_H015_H049_a_header_on_a_whole_call_is_a_copy_or_another_call() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", '{"a": 1}', 0, "x")
    again = Call(index=0, id="x")
    for raw, is_copy in (('{"a":1}', True), ('{"a":2}', False)):
        doubted = calls.doubt(again, "f", known)
        calls.note(again, doubted)
        doubted.add(raw[:3])
        assert calls.settle(doubted) is None
        assert calls.find(Call(index=0), "") is doubted
        doubted.add(raw[3:])
        assert (calls.settle(doubted) is None) == is_copy
        assert calls.find(Call(index=0), "") is (known if is_copy else doubted)
    assert [call.value for call in calls.all] == [{"a": 1}, {"a": 2}]


def test_a_header_in_the_middle_of_a_call_goes_on_with_it() -> None:
    calls = OpenCalls()
    known = opened(calls, "f", '{"a"', 0, "x")
    assert calls.find(Call(index=0, id="y"), "f") is known
    assert calls.find(Call(index=0, id="y"), "g") is None
    known.add(":1}")
    assert calls.find(Call(index=0, id="y"), "f") is None
