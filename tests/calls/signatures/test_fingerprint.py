"""Whether two calls, or two turns, are the same to us."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given

from tests.calls.telling import assistant, call, result, tool, user
from tests.dialects.answers import ARGUMENTS
from toolwire.calls.signatures.fingerprint import Leading, is_random, print_of, text_print
from toolwire.types import Media, Message, Text, ToolCall
from toolwire.wire.exact_json import object_of


def written(raw: str, call_id: str = "a", name: str = "read", kind: str = "function") -> ToolCall:
    return call(call_id, name, raw=raw, args=object_of(raw) if kind == "function" else None, kind=kind)


def seen(*calls: ToolCall) -> str:
    return print_of(calls, lambda call_id: call_id.replace("/", "_"))


@given(ARGUMENTS)
def test_arguments_printed_anew_are_the_same(args: dict[str, object]) -> None:
    first = json.dumps(args)
    again = json.dumps(dict(reversed(args.items())), ensure_ascii=False, indent=2)
    assert seen(written(first)) == seen(written(again))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ('{"a": 1.0}', '{"a": 1}', True),
        ('{"a": 1e3}', '{"a": 1000}', True),
        ('{"a": 0.10}', '{"a": 0.1}', True),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ('{"a": "\\ud800"}', '{"a":"\\ud800"}', True),
        ('{"a": 1e400}', '{"a": 1e400}', True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": "x"}', '{"a": "x "}', False),
        ('{"a": 1}', '{"a": 1, "b": null}', False),
        ('{"a": 12345678901234567}', '{"a": 12345678901234568}', False),
        ("{broken", "{broken", True),
        ("{broken", "{Broken", False),
    ],
)
def test_H079_only_what_means_the_same_is_the_same(one: str, other: str, is_same: bool) -> None:
    assert (seen(written(one)) == seen(written(other))) is is_same


def test_H079_ids_names_order_and_number_count() -> None:
    turn = [written("{}", "a"), written("{}", "b")]
    assert seen(*turn) == seen(*turn)
    others = [
        turn[::-1],
        turn[:1],
        [*turn, written("{}", "c")],
        [turn[0], written("{}", "x")],
        [turn[0], written("{}", "b", "write")],
        [written("{}", "a", "rea"), written("d{}", "b")],
    ]
    assert len({seen(*turn), *(seen(*other) for other in others)}) == 1 + len(others)


def test_an_id_that_was_fitted_is_the_same() -> None:
    assert seen(written("{}", "a/1")) == seen(written("{}", "a_1"))


def test_free_text_counts_to_the_letter() -> None:
    assert seen(written("ls", kind="custom")) != seen(written("ls ", kind="custom"))


@pytest.mark.parametrize(
    "raw", ['{"a": ' + "9" * 5000 + "}", '{"a": ' + "[" * 400 + "]" * 400 + "}", '{"a": 1e999999}']
)
def test_hostile_arguments_are_told_apart_in_no_time(raw: str) -> None:
    began = time.perf_counter()
    assert seen(written(raw)) == seen(written(raw)) != seen(written("{}"))
    assert time.perf_counter() - began < 1


def test_an_empty_text_has_no_print() -> None:
    assert text_print("") == ""
    assert len({text_print(text) for text in ("a", "a ", "\ud800")}) == 3


@pytest.mark.parametrize(
    ("call_id", "name", "expected"),
    [
        ("toolu_01A09q90qw90lq917835lq9", "read", True),
        ("call_00_Fd3AzQ81mnLoP2", "read", True),
        ("chatcmpl-tool-4fd1bb9c", "read", False),
        ("chatcmpl-tool-4fd1bb9c2d7e4cc0a5e6", "read", True),
        ("D681PevKs", "read", True),
        ("365174485", "read", True),
        ("call_0", "read", False),
        ("call_000000001", "read", False),
        ("functions.read:0", "read", False),
        ("functions.convert2markdown3:0", "convert2markdown3", False),
        ("convert2markdown3", "convert2markdown3", False),
        ("conversation", "read", False),
        ("", "read", False),
    ],
)
def test_which_ids_are_one_calls_alone(call_id: str, name: str, expected: bool) -> None:
    assert is_random(call_id, name) is expected


def leading(*messages: Message) -> str:
    return Leading(messages).print_of(len(messages))


def test_what_led_to_a_turn() -> None:
    history = [user("hi"), assistant(call("a")), tool(result("a", "x"))]
    same = leading(*history)
    assert leading(*history, assistant("begun")) == same
    assert Leading([*history, assistant("later"), user("more")]).print_of(3) == same
    assert leading(user("hi"), assistant("said otherwise", call("b")), tool(result("a", "x"))) == same
    others = [
        leading(user("hello"), *history[1:]),
        leading(*history[:2], tool(result("a", "y"))),
        leading(*history, user("x")),
        leading(user("hi")),
        leading(user(Media(kind="image", url="u"))),
        leading(),
    ]
    assert len({same, *others}) == 7


def test_the_ends_of_a_long_text_tell_it() -> None:
    middle = "m" * 5000
    assert leading(user("a" + middle + "b")) != leading(user("a" + middle + "c"))
    assert leading(user("a" + middle + "b")) != leading(user("x" + middle + "b"))
    assert leading(user("a" + middle + "b")) != leading(user("a" + middle + "mb"))


def test_no_user_among_many_messages_costs_little() -> None:
    messages = [assistant(Text(text="x")), tool(result("a"))] * 5000
    look = Leading(messages)
    began = time.perf_counter()
    assert len({look.print_of(number) for number in range(0, 10000, 2)}) == 2
    assert time.perf_counter() - began < 1
