"""What is known of clients: words are filled in everywhere, and the settings follow from the target."""

from __future__ import annotations

from toolwire.cli.clients.client import Client, Place, SettingsFile, Target, Way, filled, settings_of
from toolwire.cli.clients.settings import Item, Setting

TARGET = Target(address="http://127.0.0.1:1", model="a/b", has_key=False)


def test_words_are_filled_in_at_every_depth() -> None:
    words = TARGET.words("messages")
    value = {"@model@": ["@v1@", ("@url@", Item("id", "@model@")), 1, None, True], "@ai-sdk/x": "@address@/@name@"}
    assert filled(value, words) == {
        "a/b": ["http://127.0.0.1:1/v1", ("http://127.0.0.1:1/v1/messages", Item("id", "a/b")), 1, None, True],
        "@ai-sdk/x": "http://127.0.0.1:1/@name@",
    }


def test_a_word_in_a_word_is_left_alone() -> None:
    assert filled("@model@", TARGET.words("chat") | {"model": "@v1@"}) == "@v1@"


def test_settings_depend_on_the_key() -> None:
    file = SettingsFile(
        place=Place(names=("x",)),
        format="json",
        settings=(Setting(("m", "@model@"), "@v1@"),),
        keyed=(Setting(("k",), "env"),),
        keyless=(Setting(("k",), "dummy"),),
    )
    first, key = settings_of(file, TARGET, "chat")
    assert first == Setting(("m", "a/b"), "http://127.0.0.1:1/v1")
    assert key.value == "dummy"
    keyed = Target(address="http://x", model="m", has_key=True)
    assert settings_of(file, keyed, "chat")[1].value == "env"


def test_a_client_has_a_way_for_each_dialect() -> None:
    ways = (Way(dialect="chat", code="a"), Way(dialect="messages", code="b"))
    client = Client(name="x", title="X", ways=ways, proof="run", notes="")
    assert client.dialects == ("chat", "messages")
    assert client.way("messages").code == "b"
