from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.written.formats.holding import PROSE, check_held
from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    check_prose,
    read,
    same_however_cut,
)
from tests.thorough import examples
from toolwire.calls.written.formats.base import PlainText
from toolwire.calls.written.formats.pythonic import GRAMMARS, LiteralReader, NotPython, unescaped


@pytest.mark.parametrize(
    "text",
    [
        '[get_weather(city="Rome")] is what I would call.',
        "[get_weather(city)](https://example.com)",
        "[get_weather is a tool]",
        "[x] done\n[ ] open",
        "[1, 2, 3]",
        '[{"name": "get_weather"}]',
        "[launch_rocket(a=1)]",
        '[get_weather(city="Rome"), launch_rocket()]',
        '[get_weather("Rome")]',
        "[get_weather(city=open('x').read())]",
        "[get_weather(city=f'{1}')]",
        "[get_weather(city=1 + 1)]",
        '[get_weather(city="Rome"',
        "I would write [get_time()] here.",
        "<|python_start|>print(1)<|python_end|>",
        "[" * 60,
    ],
)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_what_is_not_all_calls_is_text(text: str, is_instructed: bool) -> None:
    check_prose(GRAMMARS, text, is_instructed=is_instructed)


def test_blanks_around_the_whole_message() -> None:
    assert calls(same_however_cut(GRAMMARS, "\n [ get_time ( ) , get_time(), ]\n ")) == [("get_time", {})] * 2


def test_between_tokens_what_cannot_be_read_is_broken_where_calls_were_asked_for() -> None:
    text = "<|python_start|>[get_weather(city=a.b)]"
    assert read(GRAMMARS, text) == [PlainText(text)]
    [found] = broken(same_however_cut(GRAMMARS, text, Tools(is_instructed=True)))
    assert (found.name, found.text) == ("get_weather", text)


@examples(50)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=8,
        ),
        max_size=3,
    )
)
def test_reads_what_python_writes(arguments: dict[str, object]) -> None:
    text = f"get_time({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    [(name, found)] = LiteralReader(text).calls("")
    assert name == "get_time"
    assert json.loads(json.dumps(found, default=float)) == json.loads(json.dumps(arguments))


@given(st.text(alphabet="abnrtvxuU0123456789\\'\"\n", max_size=12))
def test_escapes_are_those_of_python(text: str) -> None:
    try:
        expected = ast.literal_eval(f'"""{text}"""') if "N" not in text else None
    except (SyntaxError, ValueError, SyntaxWarning):
        return
    octal = any(f"\\{digit}" in text for digit in "0123456789")
    if not octal and '"' not in text and expected is not None:
        assert unescaped(text) == expected


def test_a_pair_of_surrogates_is_one_letter() -> None:
    assert unescaped("\\ud83d\\ude00") == "😀"
    assert unescaped("\\ud83d") == "\ud83d"


@pytest.mark.parametrize(
    "text", ["f(a=" + "[" * 5000, "f(a=" + "{'a':" * 5000, "f(a=" + "-" * 5000, "f(a=1, a=2)", "f(a=1"]
)
def test_hostile_literals_are_refused(text: str) -> None:
    with pytest.raises(NotPython):
        LiteralReader(text).calls("")


@pytest.mark.parametrize(
    "text",
    [
        "[get_weather(",
        "[get_weather(city",
        "[get_weather(city=",
        "[get_weather(city=Rome",
        "[get_weather(city=1",
        "[get_weather(city=+",
        '[get_weather(city="Rome"',
        "[get_weather(city='it\\'s',",
        "[get_weather(tags=[],",
        "[get_weather()",
        "[get_weather(),",
        "[get_weather" + " " * 300 + "(",
        "[get_weather(city=" + " " * 300,
        "[" + " " * 300,
    ],
)
def test_prose_in_brackets_is_not_held(text: str) -> None:
    check_held(text + PROSE)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("'it\\'s \\\\'", "it's \\"),
        ('"a) , b=c ]"', "a) , b=c ]"),
        ("[1, {'a': (2,)}]", [1, {"a": [2]}]),
        ("+1", 1),
        ("-2.5", -2.5),
        (".5", 0.5),
        ("1e+2", 100.0),
        ("1E-2", 0.01),
        ("None", None),
        ("true", True),
    ],
)
def test_all_literals_of_a_message_that_is_nothing_but_calls(written: str, value: object) -> None:
    text = f"[ get_weather( free = {written} , city='x',) , get_time( ), ]\n"
    found = [("get_weather", {"free": value, "city": "x"}), ("get_time", {})]
    assert calls(same_however_cut(GRAMMARS, text)) == found
