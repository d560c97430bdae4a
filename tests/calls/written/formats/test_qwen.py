from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed, CallGrew, CallOpened
from toolwire.calls.written.formats.qwen import GRAMMARS as BARE
from toolwire.calls.written.formats.qwen import IN_TAG

GRAMMARS = (IN_TAG, *BARE)


def written(**values: str) -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function=get_weather>\n{inner}</function>\n</tool_call>"


def test_arguments_grow_by_whole_values() -> None:
    block = IN_TAG.begin("<tool_call", Tools())
    read = block.feed("><function=get_weather><parameter=city>\nRome\n</parameter>\n<parameter=days>3")
    assert read.pieces == [CallOpened("get_weather"), CallGrew('{"city":"Rome"')]
    read = block.feed("</parameter></function></tool_call>\nok")
    assert read.pieces == [
        CallGrew(',"days":3'),
        CallGrew("}"),
        CallClosed(name="get_weather", raw='{"city":"Rome","days":3}'),
    ]
    assert read.rest == "\nok"


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("days", "30", 30),
        ("detailed", "True", True),
        ("detailed", "false", False),
        ("days", "2026-01-15", "2026-01-15"),
        ("date", "2026-01-15", "2026-01-15"),
        ("date", "20", 20),
        ("limit", "2.5", 2.5),
        ("city", "30", "30"),
        ("city", "", ""),
        ("days", "", ""),
        ("options", "{'a': True}", {"a": True}),
        ("tags", "not a list", "not a list"),
        ("stranger", "30", 30),
        ("stranger", "20.5", 20.5),
        ("stranger", "true", True),
        ("stranger", "30 km", "30 km"),
        ("stranger", '{"a": 1}', {"a": 1}),
        ("free", "[1]", [1]),
    ],
)
def test_H131_values_are_typed_by_the_schema_and_never_lost(key: str, text: str, value: object) -> None:
    assert calls(same_however_cut(GRAMMARS, written(**{key: text}))) == [("get_weather", {key: value})]


@pytest.mark.parametrize(
    "value",
    [
        "a </parameter> b",
        "</parameter></parameter>",
        "<parameter>\n</parameter>\n",
        "in a line: <parameter=x> and on",
        "<tool_call>{}</tool_call>",
    ],
)
def test_H132_a_closing_tag_inside_a_value(value: str) -> None:
    assert calls(same_however_cut(GRAMMARS, written(city=value, days="1"))) == [
        ("get_weather", {"city": value, "days": 1})
    ]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [("city", "null", "null"), ("note", "null", None), ("note", "None", None), ("limit", "null", None)],
)
def test_H133_null_is_null_only_where_the_schema_allows_it(key: str, text: str, value: object) -> None:
    assert calls(same_however_cut(GRAMMARS, written(**{key: text}))) == [("get_weather", {key: value})]


def test_one_line_end_at_each_side_belongs_to_the_tags() -> None:
    pieces = same_however_cut(GRAMMARS, written(city="\n  a\r\n\n"))
    assert calls(pieces) == [("get_weather", {"city": "\n  a\r\n\n"})]
    crlf = written(city="a").replace("\n", "\r\n")
    assert calls(same_however_cut(GRAMMARS, crlf)) == [("get_weather", {"city": "a"})]


def test_closing_tags_that_were_forgotten() -> None:
    text = "<function=get_weather>\n<parameter=city>\nRome\n<parameter=days>\n2\n</function>\nSo."
    pieces = same_however_cut(GRAMMARS, text)
    assert (calls(pieces), words(pieces)) == ([("get_weather", {"city": "Rome", "days": 2})], "\nSo.")


@pytest.mark.parametrize(
    "value", ["a\n</function>\nb", "</function>", "a</function>\nb</function>c", "</function> </parameter> d"]
)
def test_H132_the_end_of_a_function_inside_a_value(value: str) -> None:
    for found in ({"city": value}, {"city": value, "note": "x"}):
        assert calls(same_however_cut(GRAMMARS, f"{written(**found)}\nSo.")) == [("get_weather", found)]


@pytest.mark.parametrize("between", ["\n</tool_call>\n", "\nSo.\n", f"\n{'So. ' * 400}\n"])
def test_a_forgotten_closing_tag_is_not_that_of_the_next_call(between: str) -> None:
    first = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</function>"
    pieces = same_however_cut(GRAMMARS, f"{first}{between}{written(city='Rome')}")
    assert calls(pieces) == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]


def test_two_functions_in_one_tag() -> None:
    inner = "<function=get_time>\n</function>\n"
    pieces = same_however_cut(GRAMMARS, f"<tool_call>\n{inner}{inner}</tool_call>")
    assert (calls(pieces), words(pieces).strip()) == ([("get_time", {})] * 2, "")


@pytest.mark.parametrize("cut", ["</function>\n</tool_call>", "\n</function>\n</tool_call>"])
def test_a_text_that_ends_behind_a_value(cut: str) -> None:
    [*_, last] = same_however_cut(GRAMMARS, written(city="Rome").removesuffix(cut))
    assert last == CallClosed(name="get_weather", raw='{"city":"Rome"}', repairs=("unclosed",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<function=get_weather>\n<parameter=city>\nRo", "the text ends inside the arguments"),
        (
            "<function=get_weather><parameter=city>a</parameter><parameter=da",
            "the name of a parameter is missing, or does not end",
        ),
        (
            "<function=get_weather><parameter=city>a</parameter><parameter=city>b</parameter></function>",
            "an argument is there twice",
        ),
        ('<function=get_weather>{"city": "Rome}</function>', "the text ends inside the arguments"),
    ],
)
def test_what_cannot_be_read_is_broken_and_keeps_its_text(text: str, why: str) -> None:
    [found] = broken(same_however_cut(GRAMMARS, text))
    assert (found.name, found.why) == ("get_weather", why)
    assert text.startswith(found.text)


@pytest.mark.parametrize(
    "behind",
    [
        "<par",
        "<parameter=",
        "<parameter=da",
        "<parameter=days>",
        "<parameter=days>\n3",
        "<parameter=days>\n3\n</param",
        "<parameter=days\n</parameter>\n</function>",
    ],
)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_a_parameter_that_is_cut_makes_the_call_broken(behind: str, is_instructed: bool) -> None:
    text = written(city="Rome").removesuffix("</function>\n</tool_call>") + behind
    pieces = same_however_cut(GRAMMARS, text, Tools(is_instructed=is_instructed))
    [found] = broken(pieces)
    assert (found.name, found.text + words(pieces), calls(pieces)) == ("get_weather", text, [])


@pytest.mark.parametrize("is_instructed", [True, False])
def test_whole_parameters_without_an_end_are_a_call(is_instructed: bool) -> None:
    text = written(city="Rome", days="3").removesuffix("\n</function>\n</tool_call>")
    [*_, last] = same_however_cut(GRAMMARS, text, Tools(is_instructed=is_instructed))
    assert last == CallClosed(name="get_weather", raw='{"city":"Rome","days":3}', repairs=("unclosed",))
