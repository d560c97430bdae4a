from __future__ import annotations

import pytest
from hypothesis import given

from tests.calls.written.formats.native import (
    CUTS,
    Tools,
    broken,
    calls,
    check_cut,
    check_prose,
    recorded,
    same_however_cut,
    texts,
    words,
)
from toolwire.calls.written.formats.base import CallClosed
from toolwire.calls.written.formats.llama import GRAMMARS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "found", "said"),
    [
        ("llama-tag", [("get_weather", {"city": "Austin", "days": 2})], ""),
        ("llama-several", [("get_weather", {"city": "Reykjavík"}), ("get_time", {})], "One moment. "),
        ("llama-call", [("exec", {"command": 'echo "hi"'})], ""),
    ],
)
def test_recordings(name: str, found: list[object], said: str) -> None:
    pieces = recorded(GRAMMARS, name)
    assert (calls(pieces), words(pieces), broken(pieces)) == (found, said, [])


def test_nested_arguments_keep_their_letters() -> None:
    raw = '{"city":"Ni\\u00f1o", "options": {"a":[{"b": "};"}]} }'
    [*_, last] = same_however_cut(GRAMMARS, f'<|python_tag|>{{"name": "get_weather", "parameters": {raw}}}')
    assert last == CallClosed(name="get_weather", raw=raw)


def test_words_behind_a_semicolon_are_words() -> None:
    pieces = same_however_cut(GRAMMARS, '<|python_tag|>{"name": "get_time", "parameters": {}}; and so on')
    assert (calls(pieces), words(pieces)) == ([("get_time", {})], "; and so on")


@pytest.mark.parametrize(
    "text",
    [
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": Rome}}',
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Rome',
    ],
)
def test_what_cannot_be_read_is_broken_and_keeps_its_text(text: str) -> None:
    pieces = same_however_cut(GRAMMARS, text)
    assert [(found.text, found.name) for found in broken(pieces)] == [(text, "get_weather")]
    assert words(pieces) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<|python_tag|> is a token.",
        "<|python_tag|>import os\nprint(os.getcwd())",
        '<|python_tag|>{"name": "launch_rocket", "parameters": {}}',
        '<|python_tag|>{"city": "Rome"}',
        "<|python_tag|>get_weather",
        "<|python_tag|>exec.call(open('x'))",
    ],
)
def test_prose_and_code_are_no_calls(text: str) -> None:
    check_prose(GRAMMARS, text)


@given(
    texts(
        "<|python_tag|>",
        '{"name": "get_weather", "parameters": {"city": "#"}}',
        '{"parameters": {"city": "#"}, "name": "get_weather"',
        '{"name": "',
        "; ",
        'exec.call(command="#")',
        "exec(",
        ")",
        " # ",
        '"',
        "}",
        "<|eom_id|>",
    ),
    CUTS,
)
def test_cutting_does_not_matter(text: str, cuts: list[int]) -> None:
    check_cut(GRAMMARS, text, cuts)
    check_cut(GRAMMARS, text, cuts, Tools(is_instructed=True))
