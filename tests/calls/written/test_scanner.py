"""Written calls told apart from words: by their place, however the text is cut, and at a cost that follows its length."""

from __future__ import annotations

import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calls.speaking import CALL, PARIS, TIME, Writer, joined, read, read_all_ways, tag, told, told_apart
from tests.calls.written.formats.native import check
from tests.thorough import examples, is_thorough
from toolwire.calls.written.formats import GRAMMARS
from toolwire.calls.written.formats.base import CallBroken, CallClosed, CallGrew, CallOpened, Imagined, Piece, PlainText
from toolwire.calls.written.formats.openers import Openers
from toolwire.calls.written.scanner import FREE, CallScanner

NOW = tag('{"name": "get_time"}')


def found(text: str, *, is_instructed: bool = True) -> list[object]:
    return told_apart(read_all_ways(text, is_instructed=is_instructed))


# Order, and what streams.


def test_text_keeps_its_order_around_calls() -> None:
    assert found(f"One\n{tag()}\ntwo\n{NOW}{NOW}\nthree") == ["One\n", PARIS, "\ntwo\n", TIME, TIME, "\nthree"]


def test_H108_arguments_grow_as_they_were_written() -> None:
    raw = '{ "city":"mkdir -p test/{test1,test2","days" : 1E2}'
    sentinel = CallScanner(told())
    assert sentinel.feed('<tool_call>{"name": "get_weather", ') == []  # what follows may be no arguments at all
    pieces = [piece for letter in f'"arguments": {raw}}}' for piece in sentinel.feed(letter)]
    assert len(pieces) > 10
    assert joined(pieces) == [CallOpened("get_weather"), CallGrew(raw)]
    assert sentinel.feed("</tool_call>") == [CallClosed(name="get_weather", raw=raw)]


def test_words_leave_at_once() -> None:
    sentinel = CallScanner(told())
    for text in ("One ", "word ", "after\n", "another `code` ", "[x] {y} "):
        assert sentinel.feed(text) == [PlainText(text)]


def test_words_that_pass_need_not_be_fed() -> None:
    sentinel = CallScanner(told())
    assert not sentinel.passes("One")
    assert sentinel.feed("One") == [PlainText("One")]
    assert sentinel.passes(" more")
    assert not sentinel.passes(" <tool")
    assert sentinel.feed(" <tool") == [PlainText(" ")]
    assert sentinel.held == len("<tool")
    assert not sentinel.passes("s")
    assert sentinel.feed("s of the trade>") == [PlainText("<tools of the trade>")]


def test_a_place_is_known_after_text_that_was_skipped() -> None:
    sentinel = CallScanner(told())
    for _ in range(1000):
        assert sentinel.feed("word\n") == [PlainText("word\n")]
    assert joined(sentinel.feed(NOW) + sentinel.close())[-1] == CallClosed(name="get_time", raw="{}")


@pytest.mark.parametrize("is_instructed", [True, False])
def test_nothing_longer_than_an_opener_is_ever_held(is_instructed: bool) -> None:
    text = 'a <tool_cal <|tool_calls_section_beg <｜DSML TOOL_CALL_BLOC [TOOL_CALL {"tool_call <<<tool_cal </thinkin'
    for size in range(1, 9):
        sentinel = CallScanner(told(is_instructed))
        for start in range(0, len(text), size):
            sentinel.feed(text[start : start + size])
            assert sentinel.held < Openers(GRAMMARS).longest < 32


# Places.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"  \t{tag()}", ["  \t", PARIS]),
        (f"Ok. {tag()} and", ["Ok. ", PARIS, " and"]),
        (f"He said “ok.” {tag()} and", ["He said “ok.” ", PARIS, " and"]),
        (f"好。{tag()} and", ["好。", PARIS, " and"]),
        (f"Look: {tag()}", ["Look: ", PARIS]),
        (f"Look: {tag()}  \nand", ["Look: ", PARIS, "  \nand"]),
        (f"Look: {tag()} {NOW} and", ["Look: ", PARIS, " ", TIME, " and"]),
        (f"Look: {tag()}</tool_call>> \n", ["Look: ", PARIS, " \n"]),
        (f"Use {tag()}</tool_call>>}} here", [f"Use {tag()}</tool_call>>}} here"]),
        (f"Use {tag()}}}] here", [f"Use {tag()}}}] here"]),
        (f"Look: {tag()}{CALL}", [f"Look: {tag()}{CALL}"]),
        (f"Use {tag()} here", [f"Use {tag()} here"]),
        (f"Use {tag()} <tool_call> here", [f"Use {tag()} <tool_call> here"]),
        (f"Use {tag()}, or {NOW}", [f"Use {tag()}, or ", TIME]),
        (f"Use <tool_call>{CALL}\nhere", [f"Use <tool_call>{CALL}\nhere"]),
    ],
)
def test_a_block_of_its_own_is_a_call_and_one_in_a_sentence_is_text(text: str, expected: list[object]) -> None:
    assert found(text) == expected
    assert found(text, is_instructed=False) == expected


@pytest.mark.parametrize(
    "inside",
    [
        '{"name": "get_weather", "arguments": {"city": 1}}',
        '{"name": "get_weather"}',
        '{"name": "nobody", "arguments": {}}',
        '{"name": "get_weather", "arguments": "Paris"}',
        '{"name": "get_weather", "arguments": {"city": "Paris"',
        "{...}",
    ],
)
def test_inside_a_line_only_what_is_valid_counts(inside: str) -> None:
    for text in (f"Look: {tag(inside)}", f"Ok. {tag(inside)}\nmore"):
        assert found(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        f"`{tag()}`",
        f"a `` ` {tag()} `` b",
        f"an open ` {tag()}",
        f"See\n```\n{tag()}\n```",
        f"See\n```xml\n{tag()}",
        f"See\n````\n```\n{tag()}\n```\n{tag()}\n````",
        f"See\n```\n``` no end\n{tag()}\n```",
        f"See\n```\n~~~\n{tag()}\n```",
        f"See\n~~~ a`b\n{tag()}\n~~~",
        f"1. See\n\n     ```\n     {tag()}\n     ```",
        f"> ```\n{tag()}\n> ```",
        f"<think>{tag()}</think>",
        f"<think>\n{tag()}\n</thinking>\n{tag()}",
        f"Well. <thinking>{tag()}</thinking>",
        f"<Reasoning>\n{tag()}\n</REASONING>",
        f"<think>\n{tag()}",
    ],
)
def test_H124_code_and_thinking_are_text(text: str) -> None:
    for is_instructed in (True, False):
        assert found(text, is_instructed=is_instructed) == [text]


@pytest.mark.parametrize(
    "before",
    [
        "```\ncode\n```\n",
        "```\ncode\n`````  \n",
        "~~~\n```\n~~~\n",
        "`a` and `b`\n",
        "an open `\n",
        "```not a fence```\n",
        "<think>hm\n```\n</think>",
        "See <think> there\n",
    ],
)
def test_behind_code_and_thinking_calls_count_again(before: str) -> None:
    assert found(f"A\n{before}{tag()}") == [f"A\n{before}", PARIS]


def test_H123_json_counts_without_a_tag_only_if_it_is_all_there_is() -> None:
    for is_instructed in (True, False):
        assert found(f"  {CALL}\n", is_instructed=is_instructed) == ["  ", PARIS, "\n"]
        assert found(f"```json\n{CALL}\n```", is_instructed=is_instructed) == [PARIS]
        for text in (
            f"{CALL}\nThere.",
            f"There:\n{CALL}",
            f"```json\n{CALL}\n```\nThere.",
            f"There:\n```json\n{CALL}\n```",
        ):
            assert found(text, is_instructed=is_instructed) == [text]


def test_an_answer_that_is_json_is_not_held() -> None:
    sentinel = CallScanner(told())
    assert joined(sentinel.feed('```json\n{"items": [1, ')) == [PlainText('```json\n{"items": [1, ')]
    sentinel = CallScanner(told())
    assert joined(sentinel.feed('{"name": "Bob", ')) == [PlainText('{"name": "Bob", ')]


def test_unknown_names_are_calls_only_where_calls_were_asked_for() -> None:
    text = tag('{"name": "Skill", "arguments": {"name": "none"}}')
    assert found(text) == [("Skill", {"name": "none"})]  # H126: who it is for decides
    assert found(text, is_instructed=False) == [text]


def test_what_a_model_imagines_behind_its_call_is_marked() -> None:
    text = f"{tag()}\n<tool_result>\nSunny\n{tag()}"
    assert found(text) == [PARIS, "\n", Imagined(f"<tool_result>\nSunny\n{tag()}")]
    assert found(text, is_instructed=False) == [PARIS, "\n<tool_result>\nSunny\n", PARIS]
    assert found("<tool_result>\nSunny") == ["<tool_result>\nSunny"]
    assert found(f"{tag()}\nThe <tool_result> follows") == [PARIS, "\nThe <tool_result> follows"]


# What an earlier proxy got wrong.

EARLIER_FAILURES = {
    "closing_tag_in_a_string": (
        tag('{"name": "get_weather", "arguments": {"city": "</tool_call>"}}'),
        [("get_weather", {"city": "</tool_call>"})],
    ),
    "array": (tag(f"[{CALL}]"), [PARIS]),
    "two_objects": (tag(f"{CALL}\n{CALL}"), [PARIS, PARIS]),
    "fence_inside": (tag(f"\n```json\n{CALL}\n```\n"), [PARIS]),
    "raw_newline": (tag('{"name": "get_weather", "arguments": {"city": "a\nb"}}'), [("get_weather", {"city": "a\nb"})]),
    "blank_in_tag": (f"<tool_call >{CALL}</tool_call >", [PARIS]),
    "upper_case": (f"<TOOL_CALL>{CALL}</TOOL_CALL>", [PARIS]),
    "single_quotes": (tag("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}"), [PARIS]),
    "missing_arguments": (NOW, [TIME]),
    "null_arguments": (tag('{"name": "get_time", "arguments": null}'), [TIME]),
    "parameters": (tag('{"name": "get_weather", "parameters": {"city": "Paris"}}'), [PARIS]),
    "prose": (
        "Write <tool_call> and then the JSON.\nThat is all.",
        ["Write <tool_call> and then the JSON.\nThat is all."],
    ),
    "duplicate_close": (f"{tag()}</tool_call>", [PARIS]),
    "fences_around": (f"```\n{tag()}\n```", [PARIS]),
    "stray_letters": (tag(f"{CALL}>") + tag(f"{CALL}}}") + tag(f"{CALL}]"), [PARIS, PARIS, PARIS]),
    "trailing_comma": (tag('{"name": "get_weather", "arguments": {"city": "Paris",},}'), [PARIS]),
    "unterminated": (f"<tool_call>{CALL}", [PARIS]),
    "order": (f"A\n{tag()}\nB", ["A\n", PARIS, "\nB"]),
}


@pytest.mark.parametrize("name", EARLIER_FAILURES)
def test_what_an_earlier_parser_got_wrong(name: str) -> None:
    text, expected = EARLIER_FAILURES[name]
    assert found(text) == expected


def test_a_text_for_arguments_is_never_passed_as_if_it_were_json() -> None:
    text = tag('{"name": "get_weather", "arguments": "hello"}')
    [last] = read_all_ways(text)
    assert isinstance(last, CallBroken)
    assert (last.name, last.raw, last.text) == ("get_weather", "hello", text)


def test_an_example_in_a_fence_is_not_called_with_the_call_behind_it() -> None:
    for fenced in (
        f"```\n{NOW}\n```\n",
        '```json\n{"name": "get_time", "arguments": {}}\n```\n',
        f"~~~\n{NOW}\n~~~\n\n",
    ):
        assert found(f"{fenced}{tag()}") == [fenced, PARIS]


@pytest.mark.slow
def test_a_text_of_openers_is_given_up_after_some() -> None:
    text = "<tool_call> x\n" * 5000
    sentinel = CallScanner(told())
    sentinel.feed(text)
    assert sentinel.work < 5000 * 30
    for cuts in ([], range(0, len(text), 7), range(0, len(text), 4000)):
        assert read(text, cuts) == [PlainText(text)]


# Any cutting.


@given(st.integers(min_value=0), st.booleans(), st.lists(st.integers(0, 3000)))
@examples(40)
def test_H127_cutting_does_not_matter(seed: int, is_instructed: bool, cuts: list[int]) -> None:
    text, _ = Writer(seed, is_instructed=is_instructed).write()
    assert read(text, cuts, is_instructed=is_instructed) == read(text, is_instructed=is_instructed)


SHARDS = st.lists(
    st.sampled_from(
        [
            "<tool_call>", "</tool_call>", "<tool", "_call", ">", "<", CALL, '{"name": "get_time"', "}", "{", "[", "]", ",", '"', "'", "\\", "\n", " ",
            "```", "`", "~~~", "json", ". ", "words", "<think>", "</think>", "<tool_result>", "<tool_calls>", "<<<TOOL_CALL>>>", "[TOOL_CALLS]",
            "get_time", "[ARGS]", "<function=get_time>", "</function>", "<invoke name=\"get_time\">", "</invoke>", "<|channel|>", "<|python_tag|>",
            '"arguments"', ":", "{}", '{"tool_call"', "TOOL_CALL_BLOCK", "<|tool_call_begin|>", "null", "True", "é🙂",
            "**", "< tool_call>", '<tool_call id="1">', "words:\n", "; ", "//", "/*", "*/", "# ", "<parameter=a>", "</parameter>",
        ]
    ),
    max_size=30,
).map("".join)  # fmt: skip


CUTS = st.lists(st.integers(0, 400))


@given(SHARDS, st.booleans(), CUTS)
@examples(60)
def test_H127_shards_of_calls_cut_anywhere(text: str, is_instructed: bool, cuts: list[int]) -> None:
    _check_cuts(text, cuts, is_instructed=is_instructed)


@pytest.mark.slow
@given(SHARDS, st.booleans(), CUTS)
@examples(1000)
def test_H127_many_shards_of_calls_cut_anywhere(text: str, is_instructed: bool, cuts: list[int]) -> None:
    _check_cuts(text, cuts, is_instructed=is_instructed)


def _check_cuts(text: str, cuts: list[int], *, is_instructed: bool) -> None:
    whole = read(text, is_instructed=is_instructed)
    check([piece for piece in whole if not isinstance(piece, Imagined)])
    assert read(text, cuts, is_instructed=is_instructed) == whole
    assert read(text, range(len(text)), is_instructed=is_instructed) == whole
    _check_words(text, whole)


def _check_words(text: str, pieces: list[Piece]) -> None:
    """Words stand in the text, in this order; and without calls they are the text."""
    position = 0
    for piece in pieces:
        if isinstance(piece, PlainText | CallBroken | Imagined):
            assert piece.text in text[position:]
            position = text.index(piece.text, position) + len(piece.text)
    assert position == len(text) or any(not isinstance(piece, PlainText) for piece in pieces)


@given(SHARDS)
@examples(40)
def test_prose_in_code_is_never_lost_and_never_a_call(text: str) -> None:
    prose = "A\n" + "".join(f"    {line}\n" for line in text.replace("`", "").splitlines())
    fenced = f"A\n```\n{prose}```\n"
    assert told_apart(read(fenced, range(0, len(fenced), 3))) == [fenced]


def _check_written(seeds: range) -> None:
    """Each is read in pieces and gives what was written; some are also read whole, to the same pieces."""
    for seed in seeds:
        is_instructed = seed % 3 != 0
        text, expected = Writer(seed, is_instructed=is_instructed).write()
        chance = random.Random(seed)
        count = len(text) if chance.random() < (1 / 3 if is_thorough() else 1 / 12) else chance.choice((0, 3, 20))
        pieces = read(text, chance.sample(range(len(text)), k=min(len(text), count)), is_instructed=is_instructed)
        assert told_apart(pieces) == expected, (seed, text)
        check(pieces)
        if is_thorough() or seed % 8 == 0:
            assert read(text, is_instructed=is_instructed) == pieces, (seed, text)


def test_written_texts_give_what_was_written() -> None:
    _check_written(range(80))


@pytest.mark.slow
def test_twenty_thousand_written_texts_give_what_was_written() -> None:
    _check_written(range(400, 20_400))


# Hostile texts.

HOSTILE = {
    "open_strings": '<tool_call>{"a":"',
    "named_open_strings": '\n<tool_call>{"name":"get_time","arguments":{"a":"',
    "openers": "<tool_call>",
    "half_openers": "<tool_call",
    "in_sentences": 'a <tool_call>{"name":"get_weather","arguments":{"city":"',
    "letters": "<",
    "fences": "\n```\n",
    "ticks": "` ",
    "brackets": "[",
    "braces": "{",
    "deep": '{"tool_call":',
    "calls": NOW,
    "calls_in_sentences": f"a {NOW} ",
    "drifted": '\n<function_call>{"name":"get_weather","arguments":{"city":"',
    "invokes": '\n<invoke name="get_weather"><parameter name="city">',
    "thoughts": "<think>",
    "blanks": "<tool_call>" + " " * 50,
    "attributes": '\n<tool_call id="1">{"a":"',
    "words_before": "\n<tool_call>\nwords:\n{",
    "emphasis": "\n**<tool_call>**\n{ ",
    "functions": "\n<function=exec><parameter=command>a</function>",
    "comments": '\n<tool_call>{"name": "get_time" /* * / # // ',
}


@pytest.mark.slow
@pytest.mark.parametrize("is_instructed", [True, False])
@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_follows_the_length(name: str, is_instructed: bool) -> None:
    """Counted in letters that were read, again or not: no clock tells as much."""
    size = 100_000 if is_thorough() else 50_000
    once, twice = _work(HOSTILE[name], size, is_instructed), _work(HOSTILE[name], 2 * size, is_instructed)
    assert twice <= 2.2 * once + 2 * FREE
    assert twice <= 6 * 2 * size + 2 * FREE


def test_the_work_follows_the_length_of_nested_openers() -> None:
    for unit in (HOSTILE["open_strings"], HOSTILE["in_sentences"]):
        assert _work(unit, 30_000, False) <= 6 * 30_000 + 2 * FREE


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<tool_call>", "<tool_calls>", "<tool_call>\n", "\n<tool_call>[", "<function_calls>"])
def test_a_text_full_of_openers_is_soon_taken_for_words(unit: str) -> None:
    """Counted in calls of functions: every opener is given to several grammars, whose reading is not counted as letters."""
    text = unit * (22_000 // len(unit))
    sentinel = CallScanner(told(True))
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        sentinel.feed(text)
        sentinel.close()
    finally:
        sys.setprofile(None)
    assert count < 250_000


def _work(unit: str, size: int, is_instructed: bool) -> int:
    text = unit * (size // len(unit))
    sentinel = CallScanner(told(is_instructed))
    pieces = [piece for start in range(0, len(text), 4000) for piece in sentinel.feed(text[start : start + 4000])]
    pieces += sentinel.close()
    assert sum(len(piece.text) for piece in pieces if isinstance(piece, PlainText | CallBroken | Imagined)) <= len(text)
    return sentinel.work


def test_a_long_row_of_nested_openers_is_one_broken_call() -> None:
    text = '<tool_call>{"a":"' * 20_000
    [only] = read(text)
    assert isinstance(only, CallBroken)
    assert only.text == text
