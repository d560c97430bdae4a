"""The object that a text was meant to be."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.thorough import examples
from toolwire.calls.arguments.loose_json import NotLoose
from toolwire.calls.arguments.object_text import (
    FoundObject,
    SchemaFacts,
    decode_loosely,
    find_object,
    is_junk_behind,
    is_sentence_before,
    without_marks,
)


def read(text: str, *, may_close: bool = False) -> FoundObject | None:
    return find_object(
        text,
        SchemaFacts(
            may_close=lambda _value, _unclosed: may_close,
            is_sure=lambda _path: True,
            tool="run",
            names=frozenset("ab"),
            takes_empty=False,
        ),
    )


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ('```json\n{"a": 1}\n```', "fence"),
        ('```\n{"a": 1\n```', "fence"),
        ('~~~json\n{"a": 1}\n~~~', "fence"),
        ('```json\n{"a": 1}', "fence"),
        ("Sure, here's the call: {'a': 1}", "junk"),
        ('arguments: {"a": 1}', "junk"),
        ('{"a": 1}</tool_call>', "junk"),
        ('<tool_call>{"a": 1}</tool_call>', "junk"),
        ('{"a": 1}}', "junk"),
        ('{"a": 1}]}', "junk"),
        ('{"a": 1}<|im_end|>', "junk"),
        ('{"a": 1}\n\nI will now call the tool.', "junk"),
        ('\ufeff{"a": 1,}', "syntax.comma"),
        ('{"a": 1}{"a": 1}', "twice"),
        ('{"a": 1}\n{"a":1}', "twice"),
        ('{"a": 1}{"a": 1}{"a": 1}', "twice"),
        ('"{\\"a\\": 1}"', "quoted"),
        ('"\\"{\\\\\\"a\\\\\\": 1}\\""', "quoted"),
        ('[{"a": 1}]', "unlisted"),
        ('"a": 1}', "syntax.braces"),
        ("a: 1}", "syntax.braces"),
        ("run(a=1)", "syntax.braces"),
        ('run({"a": 1})', "junk"),
        ('{"a": 1</tool_call>', "junk"),
        ('Here it is, as "asked":\n\n```json\n{"a": 1}\n```\nOr so, I think.', "fence"),
        ('[TOOL_CALLS]{"a": 1}', "junk"),
        ('{"a": 1}",', "junk"),
        ('{}{"a": 1}', "twice"),
        ('{\\"a\\": 1}', "quoted"),
        ("`{'a': 1}`", "quoted"),
        ("'{\"a\": 1}'", "quoted"),
        ('"{"a": 1}"', "quoted"),
        ('{{"a": 1}}', "syntax.braces"),
        ('{"a": 1]', "syntax.bracket"),
    ],
)
def test_what_stands_around_an_object_is_taken_away(text: str, repair: str) -> None:
    found = read(text)
    assert found is not None
    assert found.arguments == {"a": 1}
    assert repair in found.repairs


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}{"a": 2}',
        '{"a": 1}{"a": 1',
        '{"a": 1}, "b": 2}',
        '"b": "x", {"a": 1}',
        'b = 2, {"a": 1}',
        '{"a": 1} and {"a": 2}',
        '[{"a": 1}, {"a": 2}]',
        "[1]",
        "5",
        '"text"',
        "some words",
        "true",
        '{"a": "x',
        '```json\n{"a": "x\n```',
        '{"a": 1} "b": 2',
        '{"a": 1}: 2',
        '{"a": 1} b: 2',
        '{"a": 1} 30',
        'a: 5, {"a": 1}',
        '{"a": "x}"',
        "other(a=1)",
        '\'{"a": "x\\\\ny"}\'',
        '{"a": {"b": 2} "b": 1}}',
    ],
)
def test_what_may_be_a_part_of_it_is_never_dropped(text: str) -> None:
    assert read(text, may_close=True) is None


@pytest.mark.parametrize("text", ['{"a": "x"', '"a": "x"', '{"a": {"b": "x"}'])
def test_a_missing_end_needs_leave(text: str) -> None:
    assert read(text) is None
    assert read(text, may_close=True) is not None


def test_a_number_at_the_end_has_no_leave() -> None:
    assert read('{"a": 10', may_close=True) is None
    assert read('"a": 10', may_close=True) is None


@pytest.mark.parametrize("text", ["", "  ", "null", "None"])
def test_H012_nothing_is_no_arguments_where_none_are_known(text: str) -> None:
    assert read(text, may_close=True) == FoundObject({}, ("empty",))
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "value"), [(" [1] ", [1]), ("{'a': 1}", {"a": 1}), ("```json\n[1]\n```", [1]), ('"[1]"', [1])]
)
def test_H025_text_that_holds_json_is_decoded(text: str, value: object) -> None:
    assert decode_loosely(text) == value


@pytest.mark.parametrize("text", ["[1", "1", "x", "", "[1] x", '{"a": "x"', "```json\n[1\n```", '"x"', "(1)"])
def test_H025_text_that_holds_half_of_it_is_not(text: str) -> None:
    with pytest.raises(NotLoose):
        decode_loosely(text)


@examples(300)
@given(st.text(st.sampled_from("{}[]\"':,`ab1 \n\\<>/|-~")) | st.text())
def test_it_never_raises(text: str) -> None:
    for may_close in (True, False):
        read(text, may_close=may_close)


def test_hostile_texts_cost_bounded_time() -> None:
    started = time.process_time()
    for piece in ("```", "<a ", "{", "a'", "}", "\\", '{"a":1}', "a:", "<|", "[/", "~~~\n", " ", "']"):
        for text in (piece * 50_000, piece * 50_000 + '{"a":1}', '{"a":1}' + piece * 50_000):
            read(text)
    read("x" * 3_000_000)
    assert time.process_time() - started < 15


NAMES = frozenset({"city", "days"})


@pytest.mark.parametrize(
    ("raw", "text", "is_ended"),
    [
        ("\ufeff {}", "{}", False),
        ("```json\n{}\n```", "{}", True),
        ("~~~\n{}", "{}", False),
        ("<tool_call>\n<arguments>{}</arguments>\n</tool_call>", "{}", True),
        ("<|python_tag|>{}<|eom_id|>", "{}", True),
        ("<｜tool▁call▁begin｜>{}<｜tool▁call▁end｜>", "{}", True),
        ("[TOOL_CALLS]{}", "{}", False),
        ("Arguments: {};", "{}", False),
        ("Here, as asked:\n```json\n{}\n```", "{}", True),
        ('{"a": 12\n', '{"a": 12\n', False),
        ('{"a": "x"}', '{"a": "x"}', False),
    ],
)
def test_marks_go(raw: str, text: str, is_ended: bool) -> None:
    found = without_marks(raw)
    assert (found.text, found.is_ended) == (text, is_ended)


@pytest.mark.parametrize("words", ["", "Sure! ", 'I\'ll call "it", so: ', "get_weather(", "result = "])
def test_sentences_before_may_go(words: str) -> None:
    assert is_sentence_before(words, NAMES)


@pytest.mark.parametrize("words", ['"city": ', "city: Paris, ", "for days = 5, ", 'an odd " quote ', ", ", "x " * 3000])
def test_what_may_be_a_member_stays(words: str) -> None:
    assert not is_sentence_before(words, NAMES)


@pytest.mark.parametrize(
    "words", ["", "}]}", "\n```", "</tool_call>", ";", ",", '"', " ...", '\n\nI used "x", which: fits.', " // done"]
)
def test_junk_behind_may_go(words: str) -> None:
    assert is_junk_behind(words, NAMES)


@pytest.mark.parametrize(
    "words", [', "days": 5}', " days: 5", " 30", '{"city": "Rome"}', ": 5", ' and "so" on', "x" * 60_000, "}" * 60_000]
)
def test_what_may_be_more_of_it_stays(words: str) -> None:
    assert not is_junk_behind(words, NAMES)
