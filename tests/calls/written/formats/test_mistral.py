from __future__ import annotations

import pytest

from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    recorded,
    recording,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats import GRAMMARS as ALL
from toolwire.calls.written.formats.base import CallClosed, CallGrew, CallOpened, PlainText
from toolwire.calls.written.formats.mistral import GRAMMARS

ROME = ("get_weather", {"city": "Rome"})
RECORDED = [
    (
        "mistral-list",
        [("get_weather", {"city": "Paris", "options": {"deep": [{"a": "]}"}]}}), ("get_time", {})],
        "",
    ),
    ("mistral-args", [("get_weather", {"city": "Besançon", "tags": ["[ARGS]", "[TOOL_CALLS]"]})], "Je regarde."),
    ("mistral-several", [("get_weather", {"city": "Paris"}), ("get_time", {})], ""),
    ("mistral-ids", [("get_weather", {"city": "Lille"}), ("exec", {"command": "ls"})], ""),
    ("mistral-bare", [("get_weather", {"city": "Nice"}), ("exec", {"command": "date"})], "\nDone."),
    ("mistral-single-quotes", [("get_weather", {"city": "Land's End", "detailed": True})], ""),
]


@pytest.mark.parametrize(("name", "found", "said"), RECORDED)
def test_H127_H129_both_forms_however_they_are_cut(name: str, found: list[object], said: str) -> None:
    pieces = recorded(GRAMMARS, name)
    assert (calls(pieces), words(pieces), broken(pieces)) == (found, said, [])


@pytest.mark.parametrize(("name", "found", "said"), RECORDED)
def test_H128_the_opener_selects_the_form_among_all(name: str, found: list[object], said: str) -> None:
    pieces = same_however_cut(ALL, recording(name))
    assert (calls(pieces), words(pieces)) == (found, said)


@pytest.mark.parametrize(
    "opener", ["[TOOL_CALLS]get_weather[ARGS]", '[TOOL_CALLS][{"name": "get_weather", "arguments": ']
)
def test_arguments_stream(opener: str) -> None:
    block = GRAMMARS[0].begin("[TOOL_CALLS]", Tools())
    read = block.feed(opener.removeprefix("[TOOL_CALLS]") + '{"city": "Ro')
    assert (read.status, read.pieces) == ("more", [CallOpened("get_weather"), CallGrew('{"city": "Ro')])


@pytest.mark.parametrize(
    "inner",
    [
        "{'name': 'get_weather', 'arguments': {'city': 'Rome'}}",
        '{"name": "get_weather", "arguments": {\'city\': \'Rome\'}}',
        "{'name': 'get_weather', 'arguments': \"{'city': 'Rome'}\"}",
    ],
)
def test_H130_single_quotes_are_read_and_counted(inner: str) -> None:
    expected = CallClosed(name="get_weather", raw='{"city":"Rome"}', repairs=("loose",))
    assert same_however_cut(GRAMMARS, f"[TOOL_CALLS] [{inner}]") == [expected]


def test_H130_an_apostrophe_inside_single_quotes() -> None:
    text = "[TOOL_CALLS] [{'name': 'exec', 'arguments': {'command': 'echo it's late'}}]"
    assert calls(same_however_cut(GRAMMARS, text)) == [("exec", {"command": "echo it's late"})]


@pytest.mark.parametrize(
    ("inner", "raw"),
    [
        ('{"arguments": {"city": "Rome"}, "name": "get_weather"}', '{"city": "Rome"}'),
        ('{"name": "get_weather", "arguments": "{\\"city\\": \\"Rome\\"}"}', '{"city": "Rome"}'),
        (
            '{"id": "a1", "name": "get_weather", "arguments": {"city": "Rome"}, "type": null, "n": -1.5}',
            '{"city": "Rome"}',
        ),
        ('{"name": "get_weather"}', "{}"),
        ('{"name": "get_weather", "arguments": null}', "{}"),
        (
            '{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}}',
            '{"city": "Rome"}',
        ),
        ('{"function": "get_weather", "parameters": {"city": "Rome"}}', '{"city": "Rome"}'),
    ],
)
def test_envelopes(inner: str, raw: str) -> None:
    pieces = same_however_cut(GRAMMARS, f"[TOOL_CALLS][{inner}]")
    assert pieces[-1] == CallClosed(name="get_weather", raw=raw)


def test_an_envelope_that_is_not_closed() -> None:
    [*_, last] = same_however_cut(GRAMMARS, '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome"}')
    assert last == CallClosed(name="get_weather", raw='{"city": "Rome"}', repairs=("unterminated",))


@pytest.mark.parametrize(
    "inner", ['{"name": "get_time", "values": {"a": 1}}', "{'name': 'get_time', 'values': {'a': 1}}"]
)
def test_unknown_members_are_not_left_out(inner: str) -> None:
    text = f"[TOOL_CALLS][{inner}"
    assert same_however_cut(GRAMMARS, f"{text}]") == [PlainText(f"{text}]")]
    [found] = broken(same_however_cut(GRAMMARS, f"{text}]", Tools(is_instructed=True)))
    assert (found.text, found.name) == (text, "get_time")


def test_an_unknown_tool_behind_a_known_one_costs_only_itself() -> None:
    text = '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome"}}, {"name": "fly", "arguments": {}}] ok'
    pieces = same_however_cut(GRAMMARS, text)
    assert (calls(pieces), words(pieces)) == ([ROME], ', {"name": "fly", "arguments": {}}] ok')


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"',
        '[TOOL_CALLS]get_weather[ARGS]{"city": Rome}',
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome',
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": Rome}}',
    ],
)
def test_what_cannot_be_read_is_broken_and_keeps_its_text(text: str) -> None:
    pieces = same_however_cut(GRAMMARS, text)
    [found] = broken(pieces)
    assert (found.text, found.name, words(pieces)) == (text, "get_weather", "")


def test_broken_before_it_was_sure_is_text_unless_calls_were_asked_for() -> None:
    text = "[TOOL_CALLS]get_weather[ARGS]{'city': ,}"
    assert same_however_cut(GRAMMARS, text) == [PlainText(text)]
    [found] = broken(same_however_cut(GRAMMARS, text, Tools(is_instructed=True)))
    assert (found.text, found.name, found.raw) == (text, "get_weather", "{'city': ,}")


@pytest.mark.parametrize(
    ("inner", "raw", "repair"),
    [
        ('{"name": "get_weather", "arguments": {"city": "a\nb"}}', '{"city": "a\\nb"}', "syntax.control"),
        ('{"name": "get_weather", "city": "Rome"}', '{"city":"Rome"}', "flat"),
        ('{"name": "get_weather" "arguments": {"city": "Rome"}}', '{"city": "Rome"}', "loose"),
    ],
)
def test_envelopes_get_the_repairs_of_other_json_calls(inner: str, raw: str, repair: str) -> None:
    pieces = same_however_cut(GRAMMARS, f"[TOOL_CALLS][{inner}]")
    assert pieces[-1] == CallClosed(name="get_weather", raw=raw, repairs=(repair,))
