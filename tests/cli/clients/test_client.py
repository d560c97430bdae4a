"""What is known of clients: words are filled in everywhere, and the settings follow from the target."""

from __future__ import annotations

from typing import Any

import pytest

from toolwire.cli.clients.client import (
    Client,
    ConnectTarget,
    DialectSetup,
    FilePlace,
    ListItem,
    Setting,
    SettingsFile,
    environment_of,
    fill,
    format_path,
    merge,
    settings_of,
    wrap,
)
from toolwire.errors import ConfigError

TARGET = ConnectTarget(address="http://127.0.0.1:1", model="a/b", has_key=False)


def test_placeholders_are_filled_in_at_every_depth() -> None:
    words = TARGET.placeholders("messages")
    value = {"@model@": ["@v1@", ("@url@", ListItem("id", "@model@")), 1, None, True], "@ai-sdk/x": "@address@/@name@"}
    assert fill(value, words) == {
        "a/b": ["http://127.0.0.1:1/v1", ("http://127.0.0.1:1/v1/messages", ListItem("id", "a/b")), 1, None, True],
        "@ai-sdk/x": "http://127.0.0.1:1/@name@",
    }


def test_a_word_in_a_word_is_left_alone() -> None:
    assert fill("@model@", TARGET.placeholders("chat") | {"model": "@v1@"}) == "@v1@"


def test_settings_depend_on_the_key() -> None:
    file = SettingsFile(
        place=FilePlace(names=("x",)),
        format="json",
        settings=(Setting(("m", "@model@"), "@v1@"),),
        keyed=(Setting(("k",), "env"),),
        keyless=(Setting(("k",), "dummy"),),
    )
    first, key = settings_of(file, TARGET, "chat")
    assert first == Setting(("m", "a/b"), "http://127.0.0.1:1/v1")
    assert key.value == "dummy"
    keyed = ConnectTarget(address="http://x", model="m", has_key=True)
    assert settings_of(file, keyed, "chat")[1].value == "env"


def test_numbers_stay_numbers_where_they_are_alone() -> None:
    target = ConnectTarget(address="http://x", model="m", has_key=False, contexts={"m": 1000})
    words = target.placeholders("chat")
    assert fill(["@context@", "@context@ tokens", "@tokens@", "@input@", "@output@"], words) == [
        *(1000, "1000 tokens", "1000", 750, 250)
    ]


def test_a_repeated_setting_is_made_for_each_model_once() -> None:
    file = SettingsFile(
        place=FilePlace(names=("x",)),
        format="json",
        settings=(Setting(("m", "@model@", "n"), "@context@", is_repeated=True, is_sized=True),),
    )
    target = ConnectTarget(address="http://x", model="m", has_key=False, small="s", large="m", contexts={"s": 5})
    made = settings_of(file, target, "chat")
    assert [(setting.path, setting.value) for setting in made] == [(("m", "m", "n"), None), (("m", "s", "n"), 5)]


def test_an_alias_has_the_context_window_of_its_model() -> None:
    way = DialectSetup(dialect="chat", prefix="gpt-5")
    target = ConnectTarget(address="http://x", model="a/b", has_key=False, contexts={"a/b": 7}).named_for(way)
    assert (target.model, target.context(target.model)) == ("gpt-5-toolwire", 7)


def test_variables_for_limits_need_a_known_size() -> None:
    variables = {"M": "@model@", "N": "@input@", "K": "$TOOLWIRE_KEY"}
    assert environment_of(variables, TARGET, "chat") == {"M": "a/b", "K": "$TOOLWIRE_KEY"}
    known = ConnectTarget(address="http://x", model="m", has_key=False, contexts={"m": 1000})
    assert environment_of(variables, known, "chat") == {"M": "m", "N": "750", "K": "$TOOLWIRE_KEY"}


def test_a_client_has_a_way_for_each_dialect() -> None:
    ways = (DialectSetup(dialect="chat", code="a"), DialectSetup(dialect="messages", code="b"))
    client = Client(name="x", title="X", ways=ways, proof="run", notes="")
    assert client.dialects == ("chat", "messages")
    assert client.way("messages").code == "b"


def test_objects_are_merged_and_the_rest_stays() -> None:
    data = {"a": {"kept": 1, "b": 2}, "z": [1]}
    assert merge(data, [Setting(("a", "b"), 3), Setting(("a",), {"c": 4})]) == {
        "a": {"kept": 1, "b": 3, "c": 4},
        "z": [1],
    }
    assert data == {"a": {"kept": 1, "b": 2}, "z": [1]}


def test_what_is_missing_is_made() -> None:
    assert merge({}, [Setting(("a", ListItem("id", "x"), "n"), 1)]) == {"a": [{"id": "x", "n": 1}]}
    assert wrap(("a", ListItem("", "x")), "x") == {"a": ["x"]}


def test_an_element_is_found_by_its_member_or_added() -> None:
    data = {"a": [{"id": "y", "n": 0}, {"id": "x", "own": True}]}
    assert merge(data, [Setting(("a", ListItem("id", "x")), {"n": 1})]) == {
        "a": [{"id": "y", "n": 0}, {"id": "x", "own": True, "n": 1}]
    }
    assert merge({"a": ["x"]}, [Setting(("a", ListItem("", "x")), "x")]) == {"a": ["x"]}
    assert merge({"a": ["y"]}, [Setting(("a", ListItem("", "x")), "x")]) == {"a": ["y", "x"]}


def test_a_default_is_only_put_where_there_is_nothing() -> None:
    settings = [Setting(("a",), 1, is_default=True), Setting(("b",), 2, is_default=True)]
    assert merge({"a": 0}, settings) == {"a": 0, "b": 2}


def test_none_removes() -> None:
    assert merge({"a": {"b": 1, "c": 2}}, [Setting(("a", "b"), None), Setting(("x", "y"), None)]) == {"a": {"c": 2}}


@pytest.mark.parametrize(
    ("data", "words"), [({"a": 1}, "a number"), ({"a": []}, "a list"), ({"a": None}, "null"), ({"a": "x"}, "a string")]
)
def test_misplaced_settings_are_reported(data: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"found {words} at .*; expected an object"):
        merge(data, [Setting(("a", "b"), 1)])
    with pytest.raises(ConfigError, match=r"found an object at .*; expected a list"):
        merge({"a": {}}, [Setting(("a", ListItem("id", "x")), {})])


def test_a_place_reads_well() -> None:
    assert format_path(("a", ListItem("id", "x"), "b")) == "a.[id=x].b"
    assert format_path(()) == "the file"
