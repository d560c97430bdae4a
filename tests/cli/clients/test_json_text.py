"""JSON with comments, changed in place: bytes that are not touched stay, and the result is what was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.cli.clients.client import ListItem, Setting, merge
from toolwire.cli.clients.json_text import apply_settings, parse
from toolwire.errors import ConfigError

COMMENTED = """\
// my settings
{
    // the theme
    "theme": "dark", /* really */
    "provider": {
        "mine": { "key": "sk-1" } // do not touch
    }
    // the end
}
"""


def test_a_new_file() -> None:
    assert apply_settings("", [Setting(("a", "b"), 1)]) == '{\n  "a": {\n    "b": 1\n  }\n}\n'
    assert apply_settings(" \n", [Setting((ListItem("name", "x"), "n"), 1)]).strip().startswith("[")


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ('{\n  "a": 1,\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
        ('{\n  "a": 1, // one\n  "b": 2,\n}\n', ("b",), '{\n  "a": 1, // one\n}\n'),
        ('{"a": {"b": {"c": 1}}}', ("a", "b"), '{"a": {}}'),
        ('{"a": 1}', ("b", "c"), '{"a": 1}'),
        ('[{"id": "x", "n": 1}]', (ListItem("id", "x"), "n"), '[{"id": "x"}]'),
        ('[{"id": "y"}]', (ListItem("id", "x"), "n"), '[{"id": "y"}]'),
    ],
)
def test_none_removes_a_member(before: str, path: Any, after: str) -> None:
    assert apply_settings(before, [Setting(path)]) == after


def test_comments_order_and_indentation_stay() -> None:
    settings = [Setting(("theme",), "light"), Setting(("provider", "toolwire"), {"npm": "x"}), Setting(("model",), "m")]
    text = apply_settings(COMMENTED, settings)
    assert (
        text
        == """\
// my settings
{
    // the theme
    "theme": "light", /* really */
    "provider": {
        "mine": { "key": "sk-1" }, // do not touch
        "toolwire": {
            "npm": "x"
        }
    },
    // the end
    "model": "m"
}
"""
    )
    assert apply_settings(text, settings) == text


def test_a_trailing_comma_stays_one() -> None:
    text = apply_settings('{\n  "a": [1, 2,],\n}\n', [Setting(("b",), 1)])
    assert text == '{\n  "a": [1, 2,],\n  "b": 1,\n}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "b": 1\n}'),
        ('{"a": 1}', '{"a": 1,\n  "b": 1\n}'),
        ("{ // nothing yet\n}", '{ // nothing yet\n  "b": 1\n}'),
        ('{\r\n\t"a": 1\r\n}\r\n', '{\r\n\t"a": 1,\r\n\t"b": 1\r\n}\r\n'),
        ('\ufeff{"a": 1}', '\ufeff{"a": 1,\n  "b": 1\n}'),
    ],
)
def test_forms_of_an_object(text: str, expected: str) -> None:
    assert apply_settings(text, [Setting(("b",), 1)]) == expected


def test_elements_of_lists() -> None:
    settings = [
        Setting((ListItem("name", "x"),), {"n": 1}),
        Setting((ListItem("name", "x"), "models", ListItem("id", "m")), {"u": 2}),
    ]
    text = apply_settings(
        '[\n  {"name": "mine", "models": []},\n  {"name": "x", "apiKey": "${input:secret}"}\n]\n', settings
    )
    assert json.loads(text)[0] == {"name": "mine", "models": []}
    assert json.loads(text)[1] == {"name": "x", "apiKey": "${input:secret}", "n": 1, "models": [{"id": "m", "u": 2}]}
    assert apply_settings(text, settings) == text


def test_a_default_does_not_replace() -> None:
    assert apply_settings('{"a": 0}', [Setting(("a",), 1, is_default=True)]) == '{"a": 0}'


def test_true_and_one_are_two_values() -> None:
    assert apply_settings('{"a": 1}', [Setting(("a",), True)]) == '{"a": true}'


def test_the_last_of_two_equal_names_is_the_one_that_counts() -> None:
    assert apply_settings('{"a": 1, "a": 2}', [Setting(("a",), 3)]) == '{"a": 1, "a": 3}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1', "line 1; expected"),
        ('{"a": 1}\n}', "line 2; expected the end of the file"),
        ('{"a" 1}', 'expected ":"'),
        ("{'a': 1}", "expected a string"),
        ('{"a": 1 "b": 2}', 'expected "," or "}"'),
        ('{"a": nul}', "expected a value"),
        ('{"a": 01}', "expected a value"),
        ('{"a": "\\x"}', "expected a string"),
        ('{"a": "\n"}', "expected a string"),
        ("[1,,2]", "expected a value"),
        ("/* never closed", "expected a value"),
        ("[" * 200, "nested more than 100 deep"),
        ("\x1b[31m", "u001b"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_settings(text, [Setting(("b",), 1)])
    assert words in caught.value.message
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": [1]}', '{"a": null}', "[]"])
def test_what_has_no_place_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected an object"):
        apply_settings(text, [Setting(("a", "b"), 1)])


def objects(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(st.sampled_from(["a", "b", "//", '"', "é\\"]), values, max_size=4)


LEAVES = st.booleans() | st.integers() | st.text()


@given(objects(LEAVES | st.none()), objects(LEAVES), st.sampled_from([None, 1, 4]))
def test_any_object_can_be_changed(before: dict[str, Any], wanted: dict[str, Any], indent: int | None) -> None:
    settings = [Setting((key,), value) for key, value in wanted.items()]
    text = apply_settings(json.dumps(before, indent=indent), settings)
    assert json.loads(text) == merge(before, settings) == parse(text).value
    assert apply_settings(text, settings) == text
