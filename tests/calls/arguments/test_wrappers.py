"""What stands around arguments."""

from __future__ import annotations

import pytest

from toolwire.calls.arguments.wrappers import is_junk_behind, is_sentence_before, without_marks

pytestmark = pytest.mark.slow

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
