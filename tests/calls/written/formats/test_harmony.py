from __future__ import annotations

import pytest

from tests.calls.written.formats.holding import PROSE, check_held
from tests.calls.written.formats.native import (
    Tools,
    broken,
    calls,
    check_prose,
    read,
    recorded,
    same_however_cut,
    words,
)
from toolwire.calls.written.formats.base import CallClosed, Piece, Thought
from toolwire.calls.written.formats.harmony import GRAMMARS
from toolwire.types import Tool

CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Rome"}<|call|>'
ROME = [("get_weather", {"city": "Rome"})]


def thoughts(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Thought))


@pytest.mark.parametrize(
    ("name", "found", "said", "thought"),
    [
        (
            "harmony-call",
            [("get_weather", {"city": "San José", "days": 2})],
            "",
            "The user wants the weather. I call the tool.",
        ),
        ("harmony-role-first", [("get_weather", {"city": "Tokyo"}), ("get_time", {})], "", ""),
        ("harmony-preamble", [("exec", {"command": "ls -la"})], "I will list the files first.", ""),
        ("harmony-final", [], "The answer is 4 < 5.", "Easy: 2 + 2 = 4."),
    ],
)
def test_recordings(name: str, found: list[object], said: str, thought: str) -> None:
    pieces = recorded(GRAMMARS, name)
    assert (calls(pieces), words(pieces), thoughts(pieces), broken(pieces)) == (found, said, thought, [])


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather<|message|>",
        "<|channel|>analysis to=functions.get_weather code<|message|>",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary<|message|>",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>",
        "<|start|>assistant<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>",
        "<|start|>assistant<|channel|>analysis to=functions.get_weather<|message|>",
        "<|start|>assistant to=functions.get_weather<|message|>",
    ],
)
@pytest.mark.parametrize("end", ["<|call|>", ""])
def test_H115_the_recipient_stands_before_or_behind_the_channel(header: str, end: str) -> None:
    pieces = same_however_cut(GRAMMARS, f'{header}{{"city": "Rome"}}{end}')
    assert (calls(pieces), words(pieces)) == (ROME, "")
    assert pieces[-1] == CallClosed(name="get_weather", raw='{"city": "Rome"}')


@pytest.mark.parametrize("recipient", ["get_weather", "functions.get_weather"])
def test_H116_with_and_without_the_prefix(recipient: str) -> None:
    assert calls(same_however_cut(GRAMMARS, CALL.replace("functions.get_weather", recipient))) == ROME


def test_H117_no_markup_reaches_the_reader() -> None:
    text = (
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>commentary<|message|>First.<|end|>"
        f"<|start|>assistant{CALL}<|start|>assistant<|channel|>final<|message|>Then 1 <| 2.<|return|>"
    )
    pieces = same_however_cut(GRAMMARS, text)
    assert (calls(pieces), words(pieces), thoughts(pieces)) == (ROME, "First.Then 1 <| 2.", "think")


def test_H117_an_answer_that_is_cut_keeps_what_was_said() -> None:
    assert words(same_however_cut(GRAMMARS, "<|channel|>final<|message|>It is <|re")) == "It is <|re"


def test_text_before_a_message_that_begins_with_its_role() -> None:
    pieces = same_however_cut(GRAMMARS, f"Let me see.<|end|><|start|>assistant{CALL} So.")
    assert (calls(pieces), words(pieces)) == (ROME, "Let me see. So.")


def test_H113_a_list_around_the_arguments_and_strays_behind_them() -> None:
    assert calls(same_however_cut(GRAMMARS, CALL.replace("}<", "}]}<"))) == ROME
    [found] = same_however_cut(GRAMMARS, CALL.replace('{"city": "Rome"}', '[{"city": "Rome"}]'))
    assert found == CallClosed(name="get_weather", raw='{"city":"Rome"}', repairs=("unlisted",))


@pytest.mark.parametrize("inner", ['{"city": Rome}', '{"city": "Rome"', '{"city": "Rome'])
def test_what_cannot_be_read_is_broken_and_keeps_its_text(inner: str) -> None:
    text = CALL.replace('{"city": "Rome"}', inner)
    [found] = broken(same_however_cut(GRAMMARS, text))
    assert (found.text, found.name) == (text, "get_weather")


@pytest.mark.parametrize(
    "text",
    [
        CALL.replace("functions.get_weather", "browser.search"),
        "<|channel|> marks a channel, <|message|> the text.",
        "<|start|>assistant is how a message begins.",
        "<|channel|>" + "final " * 80 + "<|message|>",
        "The header <|channel|>commentary to=functions.get_weather<|message|> stands before the JSON.",
        "<|channel|>commentary to=functions.get_weather<|message|>and so on",
    ],
)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_prose_about_it_is_no_call(text: str, is_instructed: bool) -> None:
    check_prose(GRAMMARS, text, is_instructed=is_instructed)


def test_thinking_that_mentions_a_call_is_no_call() -> None:
    text = "<|channel|>analysis<|message|>I write to=functions.get_weather and {}.<|end|>"
    assert read(GRAMMARS, text) == [Thought("I write to=functions.get_weather and {}.")]


@pytest.mark.parametrize("text", ["<|channel|> is", "x <|channel|> is", "x <|start|>assistant", "<|channel|> to=x"])
def test_a_header_has_an_end_or_is_prose(text: str) -> None:
    check_held(text + PROSE)


def test_a_header_has_room_for_a_long_name() -> None:
    name = "mcp__" + "x" * 95
    known = Tools(tools=[Tool(name=name, schema={"type": "object"})])
    text = f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{{}}<|call|>"
    assert calls(same_however_cut(GRAMMARS, text, known)) == [(name, {})]
