from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    broken,
    calls,
    check_prose,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed
from toolwire.calls.written.formats.llama import GRAMMARS


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
