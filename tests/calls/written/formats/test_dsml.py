from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    check_prose,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed, PlainText
from toolwire.calls.written.formats.dsml import GRAMMARS
from toolwire.types import Tool

ROME = ("get_weather", {"city": "Rome"})
DSML = (
    '<BDSMLB{0}>\n<BDSMLB{1}invoke name="get_weather">\n<BDSMLB{1}parameter name="city" string="true">Rome'
    "</BDSMLB{1}parameter>\n</BDSMLB{1}invoke>\n</BDSMLB{0}>"
)
CALL = "<｜tool▁call▁begin｜>{}<｜tool▁sep｜>{}<｜tool▁call▁end｜>"


def written(*parameters: tuple[str, str, str], section: str = "function_calls") -> str:
    inner = "".join(
        f'<｜DSML｜parameter name="{name}" string="{is_text}">{value}</｜DSML｜parameter>\n'
        for name, is_text, value in parameters
    )
    return f'<｜DSML｜{section}>\n<｜DSML｜invoke name="get_weather">\n{inner}</｜DSML｜invoke>\n</｜DSML｜{section}>'


@pytest.mark.parametrize("bars", ["｜", "｜｜", "|", "||"])
@pytest.mark.parametrize("section", ["function_calls", "tool_calls", " calls"])
@pytest.mark.parametrize("gap", ["", " "])
def test_H120_all_spellings_of_the_bars_wherever_they_are_cut(bars: str, section: str, gap: str) -> None:
    text = "Well. " + DSML.format(section, gap).replace("B", bars) + "!"
    pieces = same_however_cut(GRAMMARS, text)
    assert (calls(pieces), words(pieces)) == ([ROME], "Well. !")


def test_H120_an_invoke_without_its_section() -> None:
    text = DSML.format("tool_calls", "").replace("B", "｜")
    inner = text.removeprefix("<｜DSML｜tool_calls>\n").removesuffix("\n</｜DSML｜tool_calls>")
    assert same_however_cut(GRAMMARS, inner)[-1] == CallClosed(name="get_weather", raw='{"city":"Rome"}')


def test_H121_without_tools_there_is_nothing_to_call() -> None:
    text = DSML.format("tool_calls", "").replace("B", "｜")
    assert same_however_cut(GRAMMARS, text, Tools(tools=())) == [PlainText(text)]


def test_H122_a_call_without_arguments_has_empty_ones() -> None:
    [*_, last] = same_however_cut(GRAMMARS, written())
    assert last == CallClosed(name="get_weather", raw="{}")


@pytest.mark.parametrize(
    ("name", "is_text", "text", "value"),
    [
        ("city", "true", "30", "30"),
        ("days", "true", "30", "30"),
        ("days", "false", "30", 30),
        ("detailed", "false", " true ", True),
        ("days", "false", "tomorrow", "tomorrow"),
        ("options", "false", "{'a': 1}", {"a": 1}),
        ("city", "true", "", ""),
        ("city", "true", "a </｜DSML｜parameter> b", "a </｜DSML｜parameter> b"),
        ("city", "true", "</｜DSML｜invoke>", "</｜DSML｜invoke>"),
        ("days", "", "5", 5),
    ],
)
def test_a_parameter_says_whether_it_is_a_text(name: str, is_text: str, text: str, value: object) -> None:
    assert calls(same_however_cut(GRAMMARS, written((name, is_text, text)))) == [("get_weather", {name: value})]


def test_a_text_that_ends_behind_a_value() -> None:
    text = written(("city", "true", "Rome"))
    [*_, last] = same_however_cut(GRAMMARS, text[: text.index("\n</｜DSML｜invoke>")])
    assert last == CallClosed(name="get_weather", raw='{"city":"Rome"}', repairs=("unclosed",))


@pytest.mark.parametrize(
    "text",
    [
        written(("city", "true", "Rome")).partition("me</")[0],
        written(("city", "true", "a"), ("city", "true", "b")),
        written(("city", "true", "a")).replace(' name="city"', ""),
        CALL.format("get_weather", '{"city": Rome}'),
        CALL.format("get_weather", '{"city": "Rome"'),
        CALL.format("function", 'get_weather\n```json\n{"city": }\n```'),
    ],
)
def test_what_cannot_be_read_is_broken_and_keeps_its_text(text: str) -> None:
    pieces = same_however_cut(GRAMMARS, text)
    [found] = broken(pieces)
    assert found.name == "get_weather"
    assert text.startswith(found.text)


@pytest.mark.parametrize("gap", ["▁", "_", " ", "\\_"])
def test_spellings_of_the_older_tokens(gap: str) -> None:
    text = CALL.format("get_weather", '{"city": "Rome"}').replace("▁", gap)
    section = f"<｜tool{gap}calls{gap}begin｜>{text}<｜tool{gap}calls{gap}end｜>"
    for written_text in (text, section, section.replace("｜", "|") if gap == "▁" else text):
        assert calls(same_however_cut(GRAMMARS, written_text)) == [ROME]


@pytest.mark.parametrize(
    "inner",
    [
        'get_weather\n```json\n{"city": "Rome"}\n```',
        'get_weather\n```\n{"city": "Rome"}\n```',
        'get_weather {"city": "Rome"}',
    ],
)
def test_the_fence_of_the_older_form_may_be_another_or_none(inner: str) -> None:
    pieces = same_however_cut(GRAMMARS, f"{CALL.format('function', inner)} so")
    assert (calls(pieces), words(pieces)) == ([ROME], " so")


def test_a_tool_whose_name_is_function() -> None:
    known = Tools(tools=[Tool(name="function")])
    assert calls(same_however_cut(GRAMMARS, CALL.format("function", '{"a": 1}'), known)) == [("function", {"a": 1})]


@pytest.mark.parametrize(
    "text",
    [
        "DSML begins with <｜DSML｜function_calls> and goes on with <｜DSML｜invoke name=...>.",
        '<｜DSML｜invoke name="get_weather"> calls it.',
        written(("city", "true", "Rome")).replace("get_weather", "launch_rocket"),
        CALL.format("launch_rocket", "{}"),
        "<｜tool▁calls▁begin｜> is a token, <｜tool▁sep｜> too.",
        "<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜> and JSON",
        "<｜DSML｜" + "x" * 500,
    ],
)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_prose_about_it_is_no_call(text: str, is_instructed: bool) -> None:
    check_prose(GRAMMARS, text, is_instructed=is_instructed)
