from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    read,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed, CallGrew, CallOpened, PlainText
from toolwire.calls.written.formats.kimi import GRAMMARS

CALL = '<|tool_call_begin|>{}<|tool_call_argument_begin|>{{"city": "Rome"}}<|tool_call_end|>'


def test_arguments_stream_as_the_model_wrote_them() -> None:
    text = '<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{ "city" : "a"}<|tool_call_end|>'
    block = GRAMMARS[0].begin("<|tool_call_begin|>", Tools())
    first = block.feed(text[len("<|tool_call_begin|>") : text.index('"a"')])
    assert first.pieces == [CallOpened("get_weather"), CallGrew('{ "city" : ')]
    last = block.feed('"a"}<|tool_call_end|> so')
    assert last.pieces == [CallGrew('"a"}'), CallClosed(name="get_weather", raw='{ "city" : "a"}')]
    assert (last.status, last.rest) == ("done", " so")


def test_H118_ids_count_through_the_whole_conversation() -> None:
    text = CALL.format("functions.get_weather:17") + CALL.format("functions.get_weather:18")
    assert calls(same_however_cut(GRAMMARS, text)) == [("get_weather", {"city": "Rome"})] * 2


@pytest.mark.parametrize(
    ("given_id", "name"),
    [
        ("functions.get_weather:0", "get_weather"),
        ("get_weather:3", "get_weather"),
        ("functions_get_weather_1", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("functionsget_weather5", "get_weather"),
        (" functions.get_weather:0 ", "get_weather"),
    ],
)
def test_H119_names_are_found_in_mangled_ids(given_id: str, name: str) -> None:
    assert calls(read(GRAMMARS, CALL.format(given_id))) == [(name, {"city": "Rome"})]


@pytest.mark.parametrize("given_id", ["call00003", "tool_call_1", "call_9f3a2", "7"])
def test_H119_an_id_without_a_name_means_the_one_tool_that_takes_the_arguments(given_id: str) -> None:
    text = CALL.format(given_id).replace('"city": "Rome"', '"path": "a", "content": "b"')
    pieces = same_however_cut(GRAMMARS, text)
    assert pieces == [CallClosed(name="write_file", raw='{"path": "a", "content": "b"}', repairs=("nameless",))]


def test_H119_an_id_without_a_name_that_fits_several_tools_is_text() -> None:
    text = CALL.format("call00003").replace('"city": "Rome"', '"city": "Rome", "command": "ls"')
    assert read(GRAMMARS, text) == [PlainText(text)]


def test_unknown_tools_are_text() -> None:
    text = CALL.format("functions.launch_rocket:0")
    assert same_however_cut(GRAMMARS, text) == [PlainText(text)]
    assert read(GRAMMARS, text, known=Tools(is_instructed=True)) == [PlainText(text)]


def test_an_unknown_tool_behind_a_known_one_costs_only_itself() -> None:
    good, bad = CALL.format("functions.get_weather:0"), CALL.format("functions.nothing:1")
    pieces = same_however_cut(GRAMMARS, f"<|tool_calls_section_begin|>{good}{bad}")
    assert (calls(pieces), words(pieces)) == ([("get_weather", {"city": "Rome"})], bad)


def test_a_block_that_is_not_closed() -> None:
    text = CALL.format("functions.get_weather:0").removesuffix("<|tool_call_end|>")
    [*_, last] = same_however_cut(GRAMMARS, text)
    assert last == CallClosed(name="get_weather", raw='{"city": "Rome"}', repairs=("unterminated",))


@pytest.mark.parametrize("inner", ['{"city": Rome}', '{"city": "Rome"', '{"city": "Rome', '{"city" "Rome"}}'])
def test_what_cannot_be_read_is_broken_and_keeps_its_text(inner: str) -> None:
    text = CALL.format("functions.get_weather:0").replace('{"city": "Rome"}', inner)
    pieces = same_however_cut(GRAMMARS, text)
    [found] = broken(pieces)
    assert (found.text, found.name, words(pieces)) == (text, "get_weather", "")


@pytest.mark.parametrize(
    ("inner", "raw", "repair"),
    [
        ('"{\\"city\\": \\"Rome\\"}"', '{"city": "Rome"}', "quoted"),
        ("{'city': 'Rome'}", '{"city":"Rome"}', "loose"),
        ('[{"city": "Rome"}]', '{"city":"Rome"}', "unlisted"),
        ("null", "{}", "empty"),
        ("", "{}", "empty"),
    ],
)
def test_arguments_out_of_form_are_whole_or_nothing(inner: str, raw: str, repair: str) -> None:
    text = CALL.format("functions.get_weather:0").replace('{"city": "Rome"}', inner)
    assert same_however_cut(GRAMMARS, text) == [CallClosed(name="get_weather", raw=raw, repairs=(repair,))]


def test_strays_before_the_end_are_dropped() -> None:
    text = CALL.format("functions.get_weather:0").replace('"Rome"}', '"Rome"}]}')
    assert calls(same_however_cut(GRAMMARS, text)) == [("get_weather", {"city": "Rome"})]
