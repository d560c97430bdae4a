from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.calls.written.formats.native import Tools
from toolwire.calls.written.formats.base import BlockRead, CallBroken, CallClosed, CallGrew, CallOpened, PlainText
from toolwire.calls.written.formats.grammar import Block, Script
from toolwire.calls.written.formats.lexer import Brackets, Marks, NoCall, Steps, Tape, UnreadableCall

ENDS = Marks("<|end|>", "<|stop|>")


def run(script: Script, text: str, size: int = 0, *, is_instructed: bool = False) -> list[BlockRead]:
    """All answers of a block that gets the text in pieces of this size."""
    block = Block(script, Tape("<o>", Tools(is_instructed=is_instructed)))
    answers = []
    for start in range(0, len(text), size or len(text) or 1):
        answers.append(block.feed(text[start : start + (size or len(text))]))
        if answers[-1].status != "more":
            return answers
    return [*answers, block.close()]


def saying(read: Callable[[Tape], Steps[object]]) -> Script:
    """A script that calls a tool with what it read, to be seen from outside."""

    def script(tape: Tape) -> Steps[None]:
        tape.whole("found", json.dumps((yield from read(tape))))

    return script


def found(read: Callable[[Tape], Steps[object]], text: str) -> tuple[object, str]:
    """What is read, and what is left; the same in all sizes."""
    seen = []
    for size in (0, 1, 2, 3, 5):
        answers = run(saying(read), text, size)
        [call] = answers[-1].pieces
        assert isinstance(call, CallClosed)
        fed = min(len(answers) * (size or len(text)), len(text))
        seen.append((json.loads(call.raw), answers[-1].rest + text[fed:]))
    assert all(one == seen[0] for one in seen)
    return seen[0]


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("<|end|> x", "<|end|>", " x"),
        (" \n<|stop|>x", "<|stop|>", "x"),
        ("  <|en", "", "  <|en"),
        ("  <|enx|>", "", "  <|enx|>"),
        (" x<|end|>", "", " x<|end|>"),
        (" " * 63 + "<|end|>", "<|end|>", ""),
        (" " * 64 + "<|end|>", "", " " * 64 + "<|end|>"),
        ("", "", ""),
    ],
)
def test_past(text: str, value: str, rest: str) -> None:
    assert found(lambda tape: tape.past(ENDS), text) == (value, rest)


def test_past_goes_over_strays_only_where_a_mark_follows() -> None:
    assert found(lambda tape: tape.past(ENDS, strays=True), " ]} <|end|>.") == ("<|end|>", ".")
    assert found(lambda tape: tape.past(ENDS, strays=True), " ]} end") == ("", " ]} end")


@pytest.mark.parametrize(
    ("text", "limit", "value", "rest"),
    [
        ("a<b<|end|>c", 0, ["a<b", "<|end|>"], "c"),
        ("a<b<|en", 0, ["a<b<|en", ""], ""),
        ("abc<|end|>d", 3, ["abc", "<|end|>"], "d"),
        ("<|stop|><|end|>", 0, ["", "<|stop|>"], "<|end|>"),
    ],
)
def test_upto(text: str, limit: int, value: object, rest: str) -> None:
    assert found(lambda tape: tape.upto(ENDS, limit), text) == (value, rest)


def test_upto_gives_up_behind_its_limit() -> None:
    def read(tape: Tape) -> Steps[object]:
        return (yield from tape.upto(ENDS, 5))[1]

    assert found(read, "x" * 5 + "<|stop|>")[0] == "<|stop|>"
    assert found(read, "x" * 6 + "<|stop|>")[0] == ""


def test_ahead_reads_nothing() -> None:
    assert found(lambda tape: tape.ahead(2), ' \n{ "a"') == ('{"', ' \n{ "a"')
    assert found(lambda tape: tape.ahead(2), " {") == ("{", " {")
    assert found(lambda tape: tape.ahead(1), " " * 80 + "{")[0] == ""


def test_word() -> None:
    assert found(lambda tape: tape.word(), "get_weather-2(") == ("get_weather-2", "(")
    assert found(lambda tape: tape.word(), "") == ("", "")
    assert run(saying(lambda tape: tape.word()), "x" * 200, 7)[-1].status == "none"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    ).filter(lambda value: isinstance(value, dict | list | str)),
    st.booleans(),
)
@example({"a": "<", "b": ["'", '"', "\\", "}"]}, True)
def test_json_ends_where_it_ends(value: object, is_ascii: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    assert found(lambda tape: tape.balanced(), f'{text}"}}]') == ([text, True], '"}]')


@pytest.mark.parametrize(
    ("text", "value", "rest"),
    [
        ("{'a': 'it's', 'b': 1} x", ["{'a': 'it's', 'b': 1}", True], " x"),
        ("{'a' : '}'}.", ["{'a' : '}'}", True], "."),
        ('{"a": don\'t} x', ['{"a": don\'t}', True], " x"),
        ('{"a": 1 <|end|>}', ['{"a": 1 ', False], "<|end|>}"),
        ('{"a": "<|end|>"}', ['{"a": "<|end|>"}', True], ""),
        ('{"a": "\\"}', ['{"a": "\\"}', False], ""),
        ("[(1, [2]), f(3)]]", ["[(1, [2]), f(3)]", True], "]"),
    ],
)
def test_what_only_resembles_json_ends_where_its_brackets_do(text: str, value: object, rest: str) -> None:
    assert found(lambda tape: tape.balanced(), text) == (value, rest)


def test_brackets_say_where_they_stand() -> None:
    brackets = Brackets(depth=1)
    assert (brackets.read("a, [b])c", 0), brackets.status) == (7, "closed")


def test_flow_gives_words_as_they_come_and_keeps_back_what_may_be_a_mark() -> None:
    def script(tape: Tape) -> Steps[None]:
        yield from tape.flow(ENDS, PlainText)
        yield from tape.past(ENDS)

    first, second, last = (
        run(script, "abcdefghijk<|en" + "d|>ghi", 15)[0:1] + run(script, "abcdefgh<|end|>ghi")[0:2] * 2
    )
    assert first.pieces == [PlainText("abcdefgh")]
    assert (second.pieces, second.rest, last) == ([PlainText("abcdefgh")], "ghi", second)


def _two_calls(then: Exception) -> Script:
    def script(tape: Tape) -> Steps[None]:
        text, _ = yield from tape.upto(ENDS)
        tape.whole("first", text)
        yield from tape.upto(ENDS)
        raise then

    return script


def test_what_was_found_stays_found_and_the_rest_is_text() -> None:
    for size in (0, 1, 4):
        answers = run(_two_calls(NoCall()), "a<|end|>b<|end|>c", size)
        assert [piece for answer in answers for piece in answer.pieces] == [CallClosed(name="first", raw="a")]
        assert answers[-1].status == "done"
        assert answers[-1].rest.startswith("b<|end|>")


def test_nothing_found_is_none() -> None:
    def script(tape: Tape) -> Steps[None]:
        yield from tape.blanks()
        raise UnreadableCall("bad", "get_time", "raw")

    assert run(script, "  x")[-1] == BlockRead(status="none", rest="x")
    [answer] = run(script, "  x", is_instructed=True)
    assert answer.pieces == [CallBroken(text="<o>  ", why="bad", name="get_time", raw="raw")]
    assert (answer.status, answer.rest) == ("done", "x")


@pytest.mark.parametrize("fault", [NoCall(), UnreadableCall("bad")])
def test_an_open_call_never_becomes_text(fault: Exception) -> None:
    def script(tape: Tape) -> Steps[None]:
        yield from tape.past(Marks("["))
        tape.opened("get_time")
        tape.grew("{")
        raise fault

    [answer] = run(script, "[x")
    opened, grew, last = answer.pieces
    assert (opened, grew, answer.status, answer.rest) == (CallOpened("get_time"), CallGrew("{"), "done", "x")
    assert isinstance(last, CallBroken)
    assert (last.text, last.name, last.raw) == ("<o>[", "get_time", "{")


@pytest.mark.parametrize("letter", ["<", "{", '"', "[", "'", "\\", " ", "x", "("])
def test_a_letter_without_end_costs_no_more_than_its_length(letter: str) -> None:
    """Held in pieces of one letter: what looked at a letter again and again would take very long."""
    for read in (lambda tape: tape.balanced(), lambda tape: tape.upto(ENDS), lambda tape: tape.blanks()):
        answers = run(saying(read), letter * 20_000, 1)
        assert answers[-1].status == "done"


@pytest.mark.parametrize(
    ("text", "value"),
    [("a <|stop|> b<|end|>", "<|stop|>"), ("<|en", ""), ("x" * 13 + "<|end|>", "<|end|>"), ("x" * 14 + "<|end|>", "")],
)
def test_what_is_coming_is_not_read(text: str, value: str) -> None:
    assert found(lambda tape: tape.coming(ENDS, 20), text) == (value, text)
