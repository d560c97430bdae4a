"""<tool_call> blocks without JSON in them: meant where they stand on lines of their own, text wherever somebody only talks of the tags."""

from __future__ import annotations

import pytest

from tests.calls.speaking import CALL, PARIS, read_all_ways, tag, told_apart
from tests.calls.written.formats.holding import held
from toolwire.calls.written.formats.base import Broken, Words

pytestmark = pytest.mark.slow

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


def broken(text: str) -> Broken:
    return Broken(text=text, why=WHY)


@pytest.mark.parametrize("name", BODIES)
def test_a_block_of_its_own_was_meant_whatever_it_holds(name: str) -> None:
    block = tag(BODIES[name])
    assert read_all_ways(block) == [broken(block)]
    assert read_all_ways(f"So.\n{block} \t\r\nWell.") == [Words("So.\n"), broken(block), Words(" \t\r\nWell.")]


@pytest.mark.parametrize("name", BODIES)
def test_where_nobody_was_told_it_is_text(name: str) -> None:
    text = f"So.\n{tag(BODIES[name])}\nWell."
    assert read_all_ways(text, is_told=False) == [Words(text)]


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
        assert read_all_ways(text) == [Words(text)]


def test_blanks_behind_the_closing_tag_are_not_waited_for_without_end() -> None:
    text = f"{tag('get_time()')}{' ' * 200}\n"
    assert read_all_ways(text) == [Words(text)]


@pytest.mark.parametrize(
    ("text", "most"), [("<tool_call>\nSo: " + "w " * 999, 250), ("<tool_call> get_time " + "w " * 999, 250)]
)
def test_words_without_a_tool_are_not_held_for_long(text: str, most: int) -> None:
    assert held(text, is_told=True) <= most


def test_a_call_that_is_one_is_never_only_meant() -> None:
    assert told_apart(read_all_ways(f'<tool_call>\nget_weather\n{{"city": "Paris"}}\n</tool_call>\n{tag(CALL)}')) == [
        PARIS,
        "\n",
        PARIS,
    ]
