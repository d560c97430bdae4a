from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed
from toolwire.calls.written.formats.glm import IN_TAG

GRAMMARS = (IN_TAG,)


def written(**values: str) -> str:
    inner = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in values.items())
    return f"<tool_call>get_weather\n{inner}</tool_call>"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("city", "30", "30"),
        ("days", "30", 30),
        ("detailed", "true", True),
        ("city", "null", "null"),
        ("note", "null", None),
        ("city", "\n two\nlines\n", "\n two\nlines\n"),
        ("city", "a </tool_call> b", "a </tool_call> b"),
        ("city", "a </arg_value> b", "a </arg_value> b"),
        ("city", "<arg_key>", "<arg_key>"),
        ("tags", '["a", "b"]', ["a", "b"]),
    ],
)
def test_values_are_typed_by_the_schema(key: str, text: str, value: object) -> None:
    assert calls(same_however_cut(GRAMMARS, written(**{key: text}))) == [("get_weather", {key: value})]


def test_a_text_that_ends_behind_a_value() -> None:
    [*_, last] = same_however_cut(GRAMMARS, written(city="Rome").removesuffix("</tool_call>"))
    assert last == CallClosed(name="get_weather", raw='{"city":"Rome"}', repairs=("unclosed",))


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Ro",
        "<tool_call>get_weather<arg_key>city</arg_key>Rome",
        "<tool_call>get_weather<arg_key>city",
    ],
)
def test_what_cannot_be_read_is_broken(text: str) -> None:
    pieces = same_however_cut(GRAMMARS, text)
    [found] = broken(pieces)
    assert (found.name, found.text + words(pieces)) == ("get_weather", text)


@pytest.mark.parametrize(
    "behind",
    [
        "<arg_k",
        "<arg_key>",
        "<arg_key>da",
        "<arg_key>days</arg_key>",
        "<arg_key>days</arg_key>\n<arg_val",
        "<arg_key>days</arg_key>\n<arg_value>",
        "<arg_key>days</arg_key>\n<arg_value>3",
    ],
)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_a_pair_that_is_cut_makes_the_call_broken(behind: str, is_instructed: bool) -> None:
    text = written(city="Rome").removesuffix("</tool_call>") + behind
    pieces = same_however_cut(GRAMMARS, text, Tools(is_instructed=is_instructed))
    [found] = broken(pieces)
    assert (found.name, found.text + words(pieces), calls(pieces)) == ("get_weather", text, [])
