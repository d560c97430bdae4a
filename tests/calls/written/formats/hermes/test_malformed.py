"""Blocks out of form whose meaning is clear: calls if they are valid, Broken on lines of their own, and text if only a tag is mentioned."""

from __future__ import annotations

import json

import pytest

from tests.calls.speaking import CALL, PARIS, read_all_ways, tag, told, told_apart
from tests.calls.written.formats.holding import held
from toolwire.calls.written.formats.base import CallBroken, CallClosed, PlainText
from toolwire.calls.written.scanner import CallScanner

ARGUMENTS = '{"city": "Paris"}'
BAD = '{"name": "get_weather", "arguments": {"city": 1}}'

FORMS = {
    "id": ('<tool_call id="1">', "</tool_call>"),
    "several_attributes": ("<tool_call id=1 type='function'\n>\n", "\n</tool_call>"),
    "name_and_call": ('<tool_call name="get_weather">', "</tool_call>"),
    "blank": ("< tool_call>", "< /tool_call>"),
    "blanks": ("< tool_call >\n", "\n</ tool_call>"),
    "words": ("<tool_call>\nHere is the call:\n", "\n</tool_call>"),
    "words_on_the_line": ("<tool_call> Calling it now:\n", "</tool_call>"),
    "thought": ("<tool_call><think>Is {} right? Yes.</think>\n", "</tool_call>"),
    "bold_tags": ("**<tool_call>**\n", "\n**</tool_call>**"),
    "bold_block": ("**<tool_call>", "</tool_call>**"),
    "emphasis": ("*<tool_call>* ", " *</tool_call>*"),
}


@pytest.mark.parametrize("name", FORMS)
def test_H125_what_is_clear_is_a_call(name: str) -> None:
    opening, closing = FORMS[name]
    pieces = read_all_ways(f"So\n{opening}{CALL}{closing}\n**Well.**")
    assert told_apart(pieces) == ["So\n", PARIS, "\n**Well.**"]
    assert [piece.repairs for piece in pieces if isinstance(piece, CallClosed)] == [("drifted",)]


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("inside", [BAD, '{"name": "nobody", "arguments": {}}', '{"name": oops', f"{CALL} more"])
def test_H113_what_is_not_a_call_and_was_meant_as_one_is_broken(name: str, inside: str) -> None:
    opening, _ = FORMS[name]
    pieces = read_all_ways(f"So\n{opening}{inside}</tool_call>\nWell.")
    assert (pieces[0], pieces[-1]) == (PlainText("So\n"), PlainText("\nWell."))
    [fault] = pieces[1:-1]
    assert isinstance(fault, CallBroken)
    assert fault.text == f"{opening}{inside}</tool_call>"


@pytest.mark.parametrize("name", FORMS)
def test_without_instructions_it_is_text(name: str) -> None:
    opening, closing = FORMS[name]
    text = f"So\n{opening}{CALL}{closing}\n"
    assert read_all_ways(text, is_instructed=False) == [PlainText(text)]


@pytest.mark.parametrize(
    "text",
    [
        f'<tool_call name="get_weather">{ARGUMENTS}</tool_call>',
        f"<tool_call name='get_weather' id='7'>\n{ARGUMENTS}\n</tool_call>",
        f"<tool_call>\nget_weather\n{ARGUMENTS}\n</tool_call>",
    ],
)
def test_the_name_before_the_arguments(text: str) -> None:
    assert told_apart(read_all_ways(text)) == [PARIS]


def test_a_name_before_arguments_that_do_not_fit_is_broken() -> None:
    text = '<tool_call name="get_weather">{"city": 1}</tool_call>'
    [fault] = read_all_ways(text)
    assert isinstance(fault, CallBroken)
    assert (fault.text, fault.name, fault.raw) == (text, "get_weather", '{"city": 1}')


def test_the_whole_body_as_one_text() -> None:
    for inside in (CALL, f"[{CALL}]"):
        assert told_apart(read_all_ways(f"<tool_call>\n{json.dumps(inside)}\n</tool_call>")) == [PARIS]
    text = f"<tool_call>{json.dumps(BAD)}</tool_call>"
    assert isinstance(read_all_ways(text)[0], CallBroken)


def test_without_its_end_it_is_a_call_if_the_text_ends() -> None:
    pieces = read_all_ways(f'<tool_call id="1">{CALL}')
    assert pieces == [CallClosed(name="get_weather", raw='{"city": "Paris"}', repairs=("unterminated", "drifted"))]
    for rest in ("\nand on", "\n</tool"):
        text = f'<tool_call id="1">{CALL}{rest}'
        assert read_all_ways(text) == [PlainText(text)]


@pytest.mark.parametrize(
    "prose",
    [
        "<tool_call> is the tag that opens a block, and </tool_call> closes it.",
        f"<tool_call> comes first, then {CALL}, and </tool_call> is the end.",
        f"<tool_call>\n\nThat is the tag. {CALL} follows, and </tool_call>.",
        f"<tool_call>\nThat is `{CALL}` </tool_call>",
        f"<tool_call>\n{'many words ' * 20}\n{CALL}</tool_call>",
        "<tool_call of mine>{}</tool_call>",
        '<tool_call id="1>{}</tool_call>',
        f"<tool_call {'a=1 ' * 9}>{CALL}</tool_call>",
        "<tool_call_id>{}</tool_call_id>",
        f"<tool_call><think>{'so ' * 100}</think>{CALL}</tool_call>",
        "**<tool_call>** is the tag",
        "**bold** and *<tool* and < tool and 1 < 2",
        '<tool_call>"{} is text',
        '<tool_call id="1"',
        "<tool_call>\nwords:\n{",
    ],
)
def test_a_tag_that_is_mentioned_is_text(prose: str) -> None:
    for text in (prose, f"So\n{prose}\n"):
        assert read_all_ways(text) == [PlainText(text)]


def test_inside_a_sentence_only_a_whole_block_counts() -> None:
    assert told_apart(read_all_ways(f'So: <tool_call id="1">{CALL}</tool_call>')) == ["So: ", PARIS]
    for text in (f'So <tool_call id="1">{BAD}</tool_call>', f"So <tool_call>\nwords:\n{CALL}</tool_call>"):
        assert read_all_ways(text) == [PlainText(text)]


@pytest.mark.parametrize(
    ("text", "most"),
    [("<tool_call> is a tag, and ", 230), ("<tool_call>\n", 50), ("So <tool_call> is a tag, and ", 20), ("**so ", 4)],
)
def test_words_are_not_held_for_long(text: str, most: int) -> None:
    sentinel = CallScanner(told())
    given = longest = 0
    for position, letter in enumerate(text * 20, 1):
        given += sum(len(piece.text) for piece in sentinel.feed(letter) if isinstance(piece, PlainText))
        longest = max(longest, position - given)
    assert longest <= most


WHY = "it holds no JSON object"
LONG = "a line of a file, and no end of it\n\n" * 200

BODIES = {
    "code": '\nget_weather(city="Paris")\n',
    "code_on_the_line": 'get_weather(city="Paris")',
    "name_and_object": 'get_weather {"city": "Paris"}',
    "code_on_several_lines": '\nget_weather(\n    city="Paris",\n)\n',
    "fenced_code": '\n```python\nget_weather(city="Paris")\n```\n',
    "yaml": "\nname: get_weather\narguments:\n  city: Paris\n",
    "name_in_words": "\nthe weather in Paris by get_weather.\n",
    "unknown_tool": '\nfly(city="Paris")\n',
    "list": "[1]",
    "nothing": "",
    "nothing_on_lines": "\n\n",
    "null": "\nnull\n",
    "long": f'\nwrite_file(path="a", content="""{LONG}""")\n',
}


def broken(text: str) -> CallBroken:
    return CallBroken(text=text, why=WHY)


@pytest.mark.parametrize("name", BODIES)
def test_a_block_of_its_own_was_meant_whatever_it_holds(name: str) -> None:
    block = tag(BODIES[name])
    assert read_all_ways(block) == [broken(block)]
    assert read_all_ways(f"So.\n{block} \t\r\nWell.") == [PlainText("So.\n"), broken(block), PlainText(" \t\r\nWell.")]


@pytest.mark.parametrize("name", BODIES)
def test_without_instructions_it_is_text_in_unreadable(name: str) -> None:
    text = f"So.\n{tag(BODIES[name])}\nWell."
    assert read_all_ways(text, is_instructed=False) == [PlainText(text)]


def test_blocks_beside_it_are_read() -> None:
    block = tag(BODIES["code"])
    for text in (f"{tag()}\n{block}\n{tag()}", f"{tag()}{block}\n{tag()}"):
        assert [piece for piece in told_apart(read_all_ways(text)) if piece != "\n"] == [PARIS, broken(block), PARIS]


def test_its_tags_may_be_out_of_form() -> None:
    block = "<Tool_Call >\nget_weather: Paris\n</ TOOL_CALL >"
    assert read_all_ways(block) == [broken(block)]


@pytest.mark.parametrize(
    "prose",
    [
        "<tool_call> is the tag for get_weather(), and </tool_call> closes it.",
        "<tool_call>\nget_weather(...)\n</tool_call> is how it looks.",
        "<tool_call>get_weather(...)</tool_call>, for example.",
        "Write <tool_call>get_weather(...)</tool_call>",
        "Write: <tool_call>\nget_weather(...)\n</tool_call>",
        "> <tool_call>\n> get_weather(...)\n> </tool_call>",
        "- <tool_call>\n  get_weather(...)\n  </tool_call>",
        "<tool_call>\nand\n</tool_call>",
        "<tool_call>\n...\n</tool_call>",
        "<tool_call>\nYour call goes here\n</tool_call>",
        "<tool_call>\ncalls: `get_weather` goes here\n</tool_call>",
        "<tool_call>\nget_weather(city",
        "<tool_call>\nget_weather(city\n<tool_call>\n",
        "<tool_call>\nget_weather(city\n</tool_calls>",
        f"<tool_call>\n{'so: ' * 60}\n</tool_call>",
        f"<tool_call> and get_weather\n{'so: ' * 60}\n</tool_call>",
        "```\n<tool_call>\nget_weather(...)\n</tool_call>\n```",
        "`<tool_call>get_weather(...)</tool_call>`",
        "<think>\n<tool_call>\nget_weather(...)\n</tool_call>\n</think>",
    ],
)
def test_who_talks_of_the_tags_means_no_call(prose: str) -> None:
    for text in (prose, f"So.\n{prose}\n"):
        assert read_all_ways(text) == [PlainText(text)]


def test_blanks_behind_the_closing_tag_are_not_waited_for_without_end() -> None:
    text = f"{tag('get_time()')}{' ' * 200}\n"
    assert read_all_ways(text) == [PlainText(text)]


@pytest.mark.parametrize(
    ("text", "most"), [("<tool_call>\nSo: " + "w " * 999, 250), ("<tool_call> get_time " + "w " * 999, 250)]
)
def test_words_without_a_tool_are_not_held_for_long(text: str, most: int) -> None:
    assert held(text, is_instructed=True) <= most


def test_a_call_that_is_one_is_never_only_meant() -> None:
    assert told_apart(read_all_ways(f'<tool_call>\nget_weather\n{{"city": "Paris"}}\n</tool_call>\n{tag(CALL)}')) == [
        PARIS,
        "\n",
        PARIS,
    ]
