"""Forms that nobody told a model to write: calls if they are valid, and text to the letter if not."""

from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, PARIS, TIME, read_all_ways, tag, told_apart
from tests.calls.written.formats.holding import PROSE, check_held
from toolwire.calls.written.formats.base import CallClosed, PlainText

BAD = '{"name": "get_weather", "arguments": {"city": 1}}'
UNKNOWN = '{"name": "nobody", "arguments": {}}'

ENVELOPES = [
    ("<<<TOOL_CALL>>>", "<<<END_TOOL_CALL>>>"),
    ("<<<TOOL_CALL>>>\n", "\n<<</TOOL_CALL>>>"),
    ("TOOL_CALL_BLOCK>>>", ""),
    ("TOOL_CALL_BLOCK>>>", "\n"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_calls>\n[", "]\n</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<tool-call>", "</tool-call>"),
    ("<toolcall>\n", "\n</toolcall>"),
    ("[tool_call]", "[/tool_call]"),
    ('{"tool_call": ', "}"),
]


@pytest.mark.parametrize(("opening", "closing"), ENVELOPES)
def test_H125_other_envelopes_are_taken_if_they_are_valid(opening: str, closing: str) -> None:
    pieces = read_all_ways(f"So\n{opening}{CALL}{closing}")
    calls = [piece for piece in pieces if isinstance(piece, CallClosed)]
    assert [(call.name, call.raw) for call in calls] == [("get_weather", '{"city": "Paris"}')]
    assert "drifted" in calls[0].repairs
    assert "".join(piece.text for piece in pieces if isinstance(piece, PlainText)).strip() == "So"


@pytest.mark.parametrize(("opening", "closing"), ENVELOPES)
def test_H125_other_envelopes_are_text_if_they_are_not_valid(opening: str, closing: str) -> None:
    for inside in (BAD, UNKNOWN, "{oops", "words"):
        text = f"So\n{opening}{inside}{closing} x"
        assert read_all_ways(text) == [PlainText(text)]


@pytest.mark.parametrize(("opening", "closing"), ENVELOPES)
def test_other_envelopes_are_text_without_instructions(opening: str, closing: str) -> None:
    text = f"So\n{opening}{CALL}{closing}"
    assert read_all_ways(text, is_instructed=False) == [PlainText(text)]


def test_tags_inside_a_section() -> None:
    pieces = told_apart(read_all_ways(f"<tool_calls>\n{tag()}\n{tag()}\n</tool_calls>\n"))
    assert [piece for piece in pieces if not isinstance(piece, str)] == [PARIS, PARIS]
    assert "".join(piece for piece in pieces if isinstance(piece, str)).strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="get_weather"><parameter name="city">Paris</parameter></invoke>',
        '<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>',
        '<minimax:tool_call>\n<invoke name="get_weather">{"city": "Paris"}</invoke>\n</minimax:tool_call>',
        '<invoke name="get_weather">{"city": "Paris"}</invoke>',
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n</invoke>\n</function_calls>',
    ],
)
def test_invoke_tags(text: str) -> None:
    assert told_apart(read_all_ways(text)) == [PARIS]
    assert read_all_ways(text, is_instructed=False) == [PlainText(text)]


@pytest.mark.parametrize(
    "text",
    [
        '<invoke name="nobody"></invoke>',
        '<invoke name="get_weather"></invoke>',
        '<invoke name="get_weather"> and so on',
        "<invoke it>",
        "<function_calls> are",
    ],
)
def test_invoke_tags_that_are_no_calls_are_text(text: str) -> None:
    assert read_all_ways(text) == [PlainText(text)]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"\n{CALL}\n",
        f"[{CALL}]",
        f"```json\n{CALL}\n```",
        f"~~~\n{CALL}\n~~~\n",
        f"```\n{tag()}\n```",
        f'{{"tool_calls": [{CALL}]}}',
        CALL.replace("arguments", "parameters"),
    ],
)
def test_H123_a_message_that_is_nothing_but_a_call(text: str) -> None:
    for is_instructed in (True, False):
        pieces = told_apart(read_all_ways(text, is_instructed=is_instructed))
        assert [piece for piece in pieces if not isinstance(piece, str)] == [PARIS]
        assert "".join(piece for piece in pieces if isinstance(piece, str)).strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        BAD,
        UNKNOWN,
        f"```json\n{BAD}\n```",
        f"{CALL} so",
        f"```json\n{CALL}\n```\nso",
        '{"name": "Bob"}',
        '{"items": []}',
        "{",
        "[",
        "```",
        "[x](y)",
        '{"name": "get_weather"',
        CALL[:-2],
    ],
)
def test_H123_other_json_stays_the_answer(text: str) -> None:
    for is_instructed in (True, False):
        assert read_all_ways(text, is_instructed=is_instructed) == [PlainText(text)]


LINES = [
    '{"type":"tool_call","name":"get_weather","arguments":{"city": "Paris"}}',
    '{"type": "tool_call", "tool_call": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
    '{ "type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"} }',
    '{"type": "tool_call", "tool": "get_weather", "parameters": {"city": "Paris"}}',
    '{"type":"function_call","call_id":"c","name":"get_weather","arguments":"{\\"city\\": \\"Paris\\"}"}',
]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("is_instructed", [True, False])
def test_a_line_of_json_that_says_it_is_a_call_is_one_also_behind_a_sentence(line: str, is_instructed: bool) -> None:
    for text, words in (
        (f"I will look.\n{line}", "I will look."),
        (f"I will look. {line}\n", "I will look."),
        (f"I will look:\n\n  {line}\n\nThen we see.", "I will look:\n\n  \n\nThen we see."),
        (f"{line}\nThen we see.", "Then we see."),
    ):
        pieces = read_all_ways(text, is_instructed=is_instructed)
        assert [piece for piece in told_apart(pieces) if not isinstance(piece, str)] == [PARIS]
        assert "".join(piece.text for piece in pieces if isinstance(piece, PlainText)).strip() == words
        assert all("drifted" in piece.repairs for piece in pieces if isinstance(piece, CallClosed))


def test_several_lines_of_json_are_several_calls() -> None:
    time = '{"type":"tool_call","name":"get_time","arguments":{}}'
    assert [one for one in told_apart(read_all_ways(f"So.\n{LINES[0]}\n{time}\n")) if not isinstance(one, str)] == [
        PARIS,
        TIME,
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"A call is {LINES[0]} in this format.",
        f"So.\n{LINES[0]} as I said",
        f"So: `{LINES[0]}`",
        f"So:\n```json\n{LINES[0]}\n```\nThat is it.",
        f"So.\n{LINES[0][:-1]}",
        f"So.\n{LINES[0].replace('Paris', 'Paris')[:-2]}\n",
        LINES[0].replace('"Paris"', "1").join(("So.\n", "\n")),
        LINES[0].replace("get_weather", "nobody").join(("So.\n", "\n")),
        'So.\n{"type":"tool_call"}',
        'So.\n{"type":"tool_result","name":"get_weather","arguments":{"city":"Paris"}}',
        'So.\n{"type":"tool_call_example","name":"get_weather","arguments":{"city":"Paris"}}',
    ],
)
def test_a_line_of_json_that_is_quoted_cut_or_wrong_is_text(text: str) -> None:
    for is_instructed in (True, False):
        assert read_all_ways(text, is_instructed=is_instructed) == [PlainText(text)]


def test_several_bare_calls() -> None:
    assert told_apart(read_all_ways(f'{CALL}\n{{"name": "get_time", "arguments": {{}}}}')) == [PARIS, TIME]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("<toolcall>{", 20),
        ("<toolcall>[{", 20),
        ("[tool_call]{", 20),
        ("<<<TOOL_CALL>>>{", 30),
        ('<toolcall>{"name": "get_time",', 40),
        ('<toolcall>{"a": "', 200),
        ('{"tool_call":', 20),
        ('{"type":"tool_call"', 40),
        ('{"type":"tool_call","a":"', 200),
        ("<invoke", 200),
        ("<invoke name=", 200),
    ],
)
@pytest.mark.parametrize("before", ["So\n", "So "])
def test_prose_behind_an_opener_is_not_held(before: str, text: str, most: int) -> None:
    check_held(f"{before}{text}{PROSE}", most)


@pytest.mark.parametrize("text", ["{", '{"name":', '{"name": "get_time"', "```json\n{", "[{", "[ " * 200])
def test_prose_that_begins_like_json_is_not_held(text: str) -> None:
    check_held(text + PROSE)
