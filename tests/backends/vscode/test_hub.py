"""Which window a request goes to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.backends.vscode.test_window import hello, listed
from toolwire.backends.vscode.hub import Hub, conversation_of
from toolwire.backends.vscode.window import Window
from toolwire.backends.vscode.wire.shapes import Models
from toolwire.errors import UpstreamError
from toolwire.types import Message, Request, Text

pytestmark = pytest.mark.slow


def opened(hub: Hub, name: str, *keys: str, focused: bool = True) -> Window:
    window = Window(hello(name, focused=focused))
    window.list_models(Models(models=tuple(map(listed, keys))))
    hub.join(window)
    return window


def played(play: Callable[[Hub], None]) -> None:
    async def main() -> None:
        play(Hub())

    asyncio.run(main())


def picked(hub: Hub, name: str = "gpt-4.1", conversation: str = "c", tried: tuple[str, ...] = ()) -> str:
    found = hub.pick(name, conversation, tried)
    return "" if found is None else found.window.id


def test_without_a_window_the_user_is_told_what_to_open() -> None:
    def play(hub: Hub) -> None:
        with pytest.raises(UpstreamError, match="no VS Code window") as caught:
            hub.pick("gpt-4.1", "c")
        assert caught.value.status == 503
        assert "Open VS Code" in caught.value.hint

    played(play)


def test_a_model_that_no_window_has_is_not_found() -> None:
    def play(hub: Hub) -> None:
        opened(hub, "a", "copilot/gpt-4.1")
        with pytest.raises(UpstreamError, match=r'"claude-9"; they have "copilot/gpt-4.1"') as caught:
            hub.pick("claude-9", "c")
        assert caught.value.status == 404

    played(play)


def test_where_nothing_is_lent_yet_it_is_worth_another_try() -> None:
    def play(hub: Hub) -> None:
        waking = opened(hub, "a")
        with pytest.raises(UpstreamError, match="none at all") as caught:
            hub.pick("gpt-4.1", "c")
        assert (caught.value.status, caught.value.code) == (503, "no_models")
        assert "Sign in" in caught.value.hint
        waking.list_models(Models(models=(listed(),)))
        assert picked(hub) == "a"

    played(play)


def test_the_window_that_was_in_front_last_is_asked() -> None:
    def play(hub: Hub) -> None:
        first, _, _ = (opened(hub, name, "copilot/gpt-4.1") for name in "abc")
        assert picked(hub) == "c"
        first.focus(True)
        assert picked(hub) == "a"
        assert picked(hub, tried=("a",)) == "c"
        assert picked(hub, tried=("a", "b", "c")) == ""
        opened(hub, "d", "other/x")
        assert picked(hub) == "a"

    played(play)


def test_a_conversation_stays_where_it_was() -> None:
    def play(hub: Hub) -> None:
        first, second = (opened(hub, name, "copilot/gpt-4.1") for name in "ab")
        hub.stick("c", first)
        assert (picked(hub), picked(hub, conversation="other")) == ("a", "b")
        first.list_models(Models(models=()))
        assert picked(hub) == "b"
        hub.leave(first)
        assert picked(hub) == "b"
        second.is_leaving = True
        with pytest.raises(UpstreamError):
            picked(hub)

    played(play)


def test_windows_that_do_not_answer_or_may_not_come_last() -> None:
    def play(hub: Hub) -> None:
        windows = {name: opened(hub, name, "copilot/gpt-4.1") for name in "abc"}
        windows["c"].is_mute = True
        assert picked(hub) == "b"
        windows["b"].refused.add("copilot/gpt-4.1")
        assert picked(hub) == "a"
        assert [picked(hub, tried=("a",)), picked(hub, tried=("a", "c"))] == ["c", "b"]

    played(play)


def test_models_of_all_windows_are_listed_once_and_changes_are_told() -> None:
    def play(hub: Hub) -> None:
        told: list[list[str]] = []
        hub.changed = lambda: told.append(sorted(model.key for model in hub.models()))
        first = opened(hub, "a", "copilot/x", "copilot/y")
        opened(hub, "b", "copilot/y", "other/z")
        again = opened(hub, "a", "copilot/x")
        hub.leave(first)  # what is left of it: the window has come back
        hub.leave(again)
        assert told == [
            ["copilot/x", "copilot/y"],
            ["copilot/x", "copilot/y", "other/z"],
            ["copilot/x", "copilot/y", "other/z"],
            ["copilot/y", "other/z"],
        ]

    played(play)


def test_old_conversations_are_forgotten() -> None:
    def play(hub: Hub) -> None:
        first = opened(hub, "a", "copilot/x")
        for number in range(5000):
            hub.stick(str(number), first)
        opened(hub, "b", "copilot/x")
        assert (picked(hub, "x", "4999"), picked(hub, "x", "0")) == ("a", "b")

    played(play)


def test_what_a_conversation_is() -> None:
    def request(*texts: str, model: str = "m", owner: str = "") -> Request:
        roles = ("user", "assistant")
        messages = [Message(role=roles[n % 2], parts=(Text(text=text),)) for n, text in enumerate(texts)]  # type: ignore[arg-type] # one of the roles
        return Request(model=model, messages=tuple(messages), owner=owner)

    first = conversation_of(request("hello"))
    assert conversation_of(request("hello", "answer", "more")) == first
    others = [request("other"), request("hello", model="n"), request("hello", owner="o")]
    assert len({first, *map(conversation_of, others)}) == 4
