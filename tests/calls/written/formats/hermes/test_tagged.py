"""<tool_call> blocks in all the forms that models give them."""

from __future__ import annotations

import json

import pytest

from tests.calls.speaking import CALL, PARIS, TIME, read_all_ways, tag, told, told_apart
from tests.calls.written.formats.holding import PROSE, check_held
from tests.calls.written.formats.native import check
from toolwire.calls.written.formats import glm, qwen
from toolwire.calls.written.formats.base import CallBroken, CallClosed, CallGrew, CallOpened, Piece, PlainText
from toolwire.calls.written.formats.hermes.tagged import MOST_UNNAMED, STRAY_TAG, TOOL_CALL


def last(text: str, *, is_instructed: bool = True) -> Piece:
    return read_all_ways(text, is_instructed=is_instructed)[-1]


FORMS = {
    "blanks": (f"<tool_call>\n  {CALL}\n </tool_call>", ()),
    "odd_tags": (f"<Tool_Call\t>{CALL}</TOOL_CALL\n>", ()),
    "key_order": (tag('{"arguments": {"city": "Paris"}, "name": "get_weather"}'), ()),
    "parameters": (tag('{"name": "get_weather", "parameters": {"city": "Paris"}}'), ()),
    "args": (tag('{"tool": "get_weather", "args": {"city": "Paris"}}'), ()),
    "input": (tag('{"type": "tool_use", "id": "x", "name": "get_weather", "input": {"city": "Paris"}}'), ()),
    "ids": (tag('{"id": 7, "call_id": "c", "name": "get_weather", "arguments": {"city": "Paris"}, "index": 0}'), ()),
    "nested": (tag('{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}, "id": "c"}'), ()),
    "function_as_name": (tag('{"function": "get_weather", "arguments": {"city": "Paris"}}'), ()),
    "text": (tag('{"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}'), ()),
    "text_in_text": (tag(json.dumps({"name": "get_weather", "arguments": json.dumps(json.dumps({"city": "Paris"}))})), ("loose",)),
    "loose_text": (tag('{"name": "get_weather", "arguments": "{\'city\': \'Paris\'}"}'), ("loose",)),
    "doubled_tag": (f"<tool_call>\n{tag()}", ()),
    "extra_brace": (tag(f"{CALL}}}"), ("syntax.closers",)),
    "extra_bracket": (tag(f"{CALL}]"), ("syntax.closers",)),
    "missing_brace": (tag(CALL[:-1]), ("syntax.closed",)),
    "stray_mark": (tag(f"{CALL}>"), ("junk",)),
    "words_behind": (tag(f"{CALL} done"), ("junk",)),
    "tilde_fence": (tag(f"~~~\n{CALL}\n~~~"), ()),
    "other_closing": (f"<tool_call>{CALL}</function_call>", ("drifted",)),
    "commas": (tag('{"name": "get_weather", "arguments": {"city": "Paris" , }, }'), ("syntax.comma",)),
    "unterminated": (f"<tool_call>{CALL}", ("unterminated",)),
    "half_closed": (f"<tool_call>{CALL}</tool_", ("unterminated",)),
    "list": (tag(f"[{CALL}]"), ()),
    "wrapped_list": (tag(f'{{"tool_calls": [{CALL}]}}'), ()),
    "wrapped": (tag(f'{{"tool_call": {CALL}}}'), ()),
    "python": (tag("{'name': 'get_weather', 'arguments': {'city': 'Paris'}}"), ("loose",)),
    "kwargs": (tag('{"name": "get_weather", "kwargs": {"city": "Paris"}}'), ()),
    "tool_input": (tag('{"name": "get_weather", "tool_input": {"city": "Paris"}}'), ()),
    "action_input": (tag('{"name": "get_weather", "action_input": {"city": "Paris"}}'), ()),
    "no_comma": (tag('{"name": "get_weather" "arguments": {"city": "Paris"}}'), ("loose",)),
    "line_for_comma": (tag('{"name": "get_weather"\n"arguments": {"city": "Paris"}}'), ("loose",)),
    "semicolon": (tag('{"name": "get_weather"; "arguments": {"city": "Paris"};}'), ("loose",)),
    "line_comment": (tag('{ // "x": 1\n"name": "get_weather", // y\n"arguments": {"city": "Paris"} // z\n}'), ()),
    "hash_comment": (tag('{"name": "get_weather", # {"\n"arguments": {"city": "Paris"}}'), ()),
    "block_comment": (tag('{/* " **/"name": "get_weather",/*/ {*/"arguments": {"city": "Paris"}/**/}'), ()),
    "bare_keys": (tag('{name: "get_weather", arguments: {city: "Paris"}}'), ("loose",)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_one_call(name: str) -> None:
    text, repairs = FORMS[name]
    for is_instructed in (True, False):
        pieces = read_all_ways(text, is_instructed=is_instructed)
        assert told_apart(pieces) == [PARIS]
        assert isinstance(pieces[-1], CallClosed)
        assert pieces[-1].repairs == repairs


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        ', "arguments": null',
        ', "arguments": {}',
        ', "arguments": ""',
        ', "arguments": "{}"',
        ', "arguments": "null"',
    ],
)
def test_H109_no_arguments_are_an_empty_object(arguments: str) -> None:
    assert last(tag(f'{{"name": "get_time"{arguments}}}')) == CallClosed(name="get_time", raw="{}")


def test_H110_control_letters_in_texts_become_their_escapes() -> None:
    assert last(tag('{"name": "get_weather", "arguments": {"city": "a\n\tb\x01\\"c"}}')) == CallClosed(
        name="get_weather", raw='{"city": "a\\n\\tb\\u0001\\"c"}', repairs=("syntax.control",)
    )


def test_python_words_become_json() -> None:
    closed = last(tag('{"name": "get_weather", "arguments": {"city": "True", "detailed": True, "note": None}}'))
    assert closed == CallClosed(
        name="get_weather", raw='{"city": "True", "detailed": true, "note": null}', repairs=("syntax.literal",)
    )


def test_H130_apostrophes_between_single_quotes() -> None:
    closed = last(tag("{'name': 'get_weather', 'arguments': {'city': \"Land's End\", 'note': 'it\\'s'}}"))
    assert isinstance(closed, CallClosed)
    assert json.loads(closed.raw) == {"city": "Land's End", "note": "it's"}


def test_several_calls_in_one_block() -> None:
    for inside in (
        f"[{CALL}, {CALL}]",
        f"{CALL}\n{CALL}",
        f"{CALL},{CALL}",
        f'{{"tool_calls": [{CALL}, {CALL}]}}',
        f"{CALL}<tool_call>{CALL}",
    ):
        assert told_apart(read_all_ways(tag(inside))) == [PARIS, PARIS]


def test_a_tool_may_be_called_tool_call() -> None:
    name = json.loads(CALL) | {"name": "tool_call"}
    assert told_apart(read_all_ways(tag(json.dumps(name)))) == [("tool_call", {"city": "Paris"})]


def test_lone_surrogates_and_long_numbers_stay_as_they_are() -> None:
    raw = '{"city": "\\ud83d", "limit": 12345678901234567890123, "free": 1e400}'
    assert last(tag(f'{{"name": "get_weather", "arguments": {raw}}}')) == CallClosed(name="get_weather", raw=raw)


@pytest.mark.parametrize(
    ("inside", "name", "raw"),
    [
        ("{oops}", "", ""),
        ("{}", "", ""),
        ('{"name": ["get_time"]}', "", ""),
        ('{"name": "get_weather", "arguments": {"city": [1}}', "get_weather", '{"city": [1}'),
        ('{"name": "get_weather", "arguments": {"city": "a "b" c"}}', "get_weather", '{"city": "a "b" c"}'),
        ('{"name": "get_weather", "arguments": {"city": "a"', "get_weather", '{"city": "a"'),
        ('{"name": "get_weather", "arguments": 7}', "get_weather", "7"),
        ('{"name": "get_time", "values": {"a": 1}}', "get_time", ""),
        ('{"name": "get_time", "reason": "as asked"}', "get_time", ""),
        ('{"name": "get_time"; arguments: {"a": 1}}', "get_time", ""),
        ('{"name": "get_time", "arguments" = {"a": 1}}', "get_time", ""),
        ('{"name": "get_time", "arguments" {"a": 1}}', "get_time", ""),
        ('{"name": "get_time", "arguments": null {"a": 1}}', "get_time", "null"),
        ('{"name": "get_time", "arguments"}', "get_time", ""),
        ('{"name": "get_time", "arguments":}', "get_time", ""),
        ('{"name": "get_time", // "arguments": {"a": 1}\n}', "get_time", ""),
        ('{"name": "get_time" / "arguments": {"a": }', "get_time", '{"a": }'),
    ],
)
def test_H113_what_cannot_be_read_is_broken_where_calls_were_asked_for(inside: str, name: str, raw: str) -> None:
    pieces = read_all_ways(f"{tag(inside)} more")
    assert pieces[-1] == PlainText(" more")
    fault = pieces[-2]
    assert isinstance(fault, CallBroken)
    assert (fault.text, fault.name, fault.raw) == (tag(inside), name, raw)
    assert fault.why


def test_what_names_no_tool_is_text_without_instructions() -> None:
    for inside in ("{oops}", "{}", '{"name": "nobody", "arguments": {}}', '{"a": [}'):
        assert read_all_ways(tag(inside), is_instructed=False) == [PlainText(tag(inside))]


def test_behind_a_call_a_stranger_is_text_without_instructions() -> None:
    text = f'<tool_call>{CALL}, {{"name": "nobody"}}</tool_call>'
    assert told_apart(read_all_ways(text, is_instructed=False)) == [PARIS, '{"name": "nobody"}</tool_call>']
    for rest in ("{}<tool_call>", "{}</tool_call>", "{}\nwords", "{} words", "{}", "{}\n</tool"):
        assert told_apart(read_all_ways(f"<tool_call>{CALL}{rest}", is_instructed=False)) == [PARIS, rest]


def test_a_call_that_is_cut_is_broken_once_it_was_announced() -> None:
    for is_instructed in (True, False):
        text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Par'
        assert read_all_ways(text, is_instructed=is_instructed) == [
            CallOpened("get_weather"),
            CallGrew('{"city": "Par'),
            CallBroken(text=text, why="the text ends before its JSON does", name="get_weather", raw='{"city": "Par'),
        ]


def test_words_on_the_next_line_end_a_block_without_a_closing_tag() -> None:
    for rest in ("\n\nNow I wait.", "\n > quoted", "\n<b>bold</b>"):
        assert told_apart(read_all_ways(f"<tool_call>{CALL}{rest}")) == [PARIS, rest]
    assert told_apart(read_all_ways(f"<tool_call>{CALL}\n<tool_call> is a tag")) == [PARIS, "<tool_call> is a tag"]


def test_words_behind_json_that_does_not_fit_are_not_forgiven() -> None:
    fault = last(tag('{"name": "get_weather", "arguments": {"city": 1}} done'))
    assert isinstance(fault, CallBroken)
    assert fault.raw == '{"city": 1}'


@pytest.mark.parametrize(
    "prose",
    [
        "<tool_call>",
        "<tool_call></tool_call> is a pair of tags",
        "<tool_call> is a tag",
        "<tool_call\n\n\n",
        "<tool_call>[1]</tool_call> is a list",
        "<tool_call>```python\nx",
        "<tool_call>" * 9,
    ],
)
def test_what_does_not_begin_like_a_call_is_text(prose: str) -> None:
    assert read_all_ways(prose) == [PlainText(prose)]


def test_a_block_says_how_much_it_needed() -> None:
    block = TOOL_CALL.begin("<tool_call", told())
    assert block.feed(">{").status == "more"
    read = block.feed(f"{CALL[1:]}</tool_call> rest")
    assert (read.status, read.rest) == ("done", " rest")
    check([CallOpened("get_weather"), *read.pieces][1:])
    assert TOOL_CALL.begin("<tool_call", told()).feed("> x y").rest == "x y"


def test_the_time_needs_no_arguments() -> None:
    assert told_apart(read_all_ways(tag('{"name": "functions.get_time"}'))) == [("functions.get_time", {})]
    assert told_apart(read_all_ways(tag('{"name": "get_time"}'), is_instructed=False)) == [TIME]


def test_other_forms_behind_the_same_tag() -> None:
    for inside in (
        "\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n",
        "get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n",
    ):
        for is_instructed in (True, False):
            assert told_apart(read_all_ways(tag(inside), is_instructed=is_instructed)) == [PARIS]
            assert told_apart(read_all_ways(f"<tool_call >{inside}</tool_call>", is_instructed=is_instructed)) == [
                PARIS
            ]


def test_a_tag_that_does_not_end_is_none() -> None:
    for grammar in (qwen.IN_TAG, glm.IN_TAG):
        assert grammar.begin("<tool_call", told()).feed("s").status == "none"
        assert grammar.begin("<tool_call", told()).feed(" " * 80).status == "none"
        assert grammar.begin("<tool_call", told()).close().status == "none"


def test_a_closing_tag_that_closes_nothing_says_nothing() -> None:
    block = STRAY_TAG.begin("</tool_call", told())
    assert block.feed(" ").status == "more"
    read = block.feed("> x")
    assert (read.status, read.pieces, read.rest) == ("done", [], " x")
    assert STRAY_TAG.begin("</tool_call", told()).feed("er>").status == "none"


def test_closing_tags_go_only_behind_blocks() -> None:
    assert told_apart(read_all_ways(f"{tag()}\n</tool_call>\n</tool_calls>x</tool_call>")) == [
        PARIS,
        "\n\nx</tool_call>",
    ]
    assert told_apart(read_all_ways("x\n</tool_call>\n")) == ["x\n</tool_call>\n"]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("<tool_call>{", 20),
        ("<tool_call>[{", 20),
        ("<tool_call><tool_call>{", 30),
        ('<tool_call>{"name": "get_time"', 40),
        ('<tool_call>{"name": "get_time",', 40),
        ('<tool_call>{"name": "get_time", "arguments"', 50),
        ('<tool_call>{"name": "get_time", "arguments": 1', 50),
        ('<tool_call>{"name": "get_time", "arguments": {}', 55),
        ('<tool_call>{"name": "get_time" {', 40),
        ('<tool_call>{"name":', 30),
        ('<tool_call>{"a": "', 200),
        ("<tool_call>{'a': '", 200),
        ('<tool_call>{"arguments": {', 200),
        ("<tool_call>" + " " * 300 + "{", 200),
        ("<|channel|>final<|message|>", 50),
    ],
)
def test_prose_behind_a_brace_is_not_held(text: str, most: int) -> None:
    check_held(f"x {text}{PROSE}", most)


@pytest.mark.parametrize(
    "inside",
    [
        CALL,
        f"[{CALL}]",
        f"\n```json\n{CALL}\n```\n",
        f"<tool_call>{CALL}",
        '{"id": 1, "type": null, "name": "get_weather", "arguments": {"city": "Paris"}, }',
        '{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
        '{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}',
        "{'name': 'get_weather', 'arguments': {'city': 'Paris'}}",
        '{"name": "get_weather" "arguments": {city: "Paris"}}',
        '{"arguments": {"city": "Paris"}, "name": "get_weather"}',
    ],
)
def test_a_call_inside_a_line_may_have_any_of_its_shapes(inside: str) -> None:
    for is_instructed in (True, False):
        assert told_apart(read_all_ways(f"x {tag(inside)}", is_instructed=is_instructed)) == ["x ", PARIS]


def test_a_call_that_is_named_is_held_as_long_as_it_goes_on() -> None:
    city = "w " * MOST_UNNAMED
    text = f"x {tag(CALL.replace('Paris', city))}"
    assert told_apart(read_all_ways(text)) == ["x ", ("get_weather", {"city": city})]
