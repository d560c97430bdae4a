"""Words of a prompt: which tool they fit and which arguments they hold."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.demo.prompt_match import hints_of, likely_number, named_tools, score, stems_of
from toolwire.types import Tool

WEATHER = Tool(
    name="get_weather",
    description="Forecast for a city",
    schema={"type": "object", "properties": {"city": {}, "unit": {}}},
)
MAIL = Tool(name="sendMail", description="Send a letter")


def test_stems_come_from_names_and_sentences() -> None:
    assert stems_of("listHTTPServers") == stems_of("list http server")
    assert stems_of("get_weather-now.v2") == {"weather", "now", "v2"}
    assert stems_of("Cities baking boxes") == stems_of("city bake box")


def test_names_weigh_more_than_descriptions() -> None:
    assert score(WEATHER, "weather") == 3
    assert score(WEATHER, "forecast for my cities") == 3
    assert score(MAIL, "mail the letters") == 4
    assert score(MAIL, "the weather") == 0
    assert score(Tool(name="x", schema={"properties": ["nonsense"]}), "nonsense") == 0


def test_a_tool_that_changes_things_must_be_asked_to() -> None:
    edit, read = Tool(name="edit_file"), Tool(name="read_file")
    assert score(edit, "show the file") < score(read, "show the file")
    assert score(edit, "edit the file") > score(read, "edit the file")


def test_the_verb_of_a_tool_weighs_most() -> None:
    listing, todo = Tool(name="list_dir"), Tool(name="manage_todo_list")
    assert score(listing, "list what is here") > score(todo, "list what is here")
    assert score(Tool(name="the"), "the") == 0


def test_paths_and_names_of_tools_are_no_texts() -> None:
    hints = hints_of("use `read_file` for README.md in Oslo", tools=["read_file"])
    assert hints.texts == ("Oslo",)
    assert hints.paths == ("README.md",)
    assert hints_of("in README.md").texts == ()


def test_numbers_that_are_missing() -> None:
    assert likely_number("startLine", "") == 1
    assert likely_number("offset", "1-based") == 1
    assert likely_number("endLine", "") == 100
    assert likely_number("temperature", "") is None


def test_tools_are_named_exactly_and_in_order() -> None:
    assert named_tools([WEATHER, MAIL], "first sendMail, then get_weather.") == [MAIL, WEATHER]
    assert named_tools([WEATHER, MAIL], "sendMails or get_weather_now") == []
    assert named_tools([Tool(name="")], "anything") == []
    prefixed = [Tool(name=name) for name in ("City-get_time", "mcp__files__readFile", "web-search", "a__b")]
    assert named_tools(prefixed, "readFile, get_time, search and b") == [prefixed[1], prefixed[0]]


def test_quoted_texts_come_first() -> None:
    assert hints_of('in Oslo, say "good day" to Ann Lee').texts == ("good day", "Oslo", "Ann Lee")
    assert hints_of("it's 'so' and `co`").texts == ("so", "co")
    assert hints_of("for the sake of berlin").texts == ("berlin",)


def test_numbers_are_apart_from_dates_and_words() -> None:
    hints = hints_of("add 2, -3.5 and 4. on 2025-01-02 for v2 or 1.2.3")
    assert hints.numbers[:3] == (2, -3.5, 4)
    assert "2025-01-02" in hints.texts
    assert hints_of("mail ann@example.com or see https://example.com/a").texts[-2:] == (
        "ann@example.com",
        "https://example.com/a",
    )


def test_a_value_can_stand_after_its_name() -> None:
    hints = hints_of('city: Oslo, max_rows = 5; note is "a b".')
    assert [hints.value_of(name) for name in ("city", "max_rows", "note", "", "other")] == [
        "Oslo",
        "5",
        "a b",
        None,
        None,
    ]
    assert hints.names("max_rows")
    assert not hints.names("min_rows")


@given(st.text(max_size=300))
def test_any_prompt_is_read(prompt: str) -> None:
    hints = hints_of(prompt)
    assert hints.prompt == prompt
    hints.value_of("city")


def test_a_long_prompt_costs_little() -> None:
    begun = time.process_time()
    for piece in ("A ", "in ", '"', "a@", "a.", "1.", "'a ", "-1", "A'"):
        hints = hints_of(piece * 20_000)
        hints.value_of("city")
        named_tools([WEATHER, MAIL], piece * 20_000)
    assert time.process_time() - begun < 1.5
