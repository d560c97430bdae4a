"""Windows and the gateway restart: each request has one window, and each window reconnects."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.programs.codex_backend.clients import Chat
from tests.programs.codex_backend.processes import eventually
from tests.programs.codex_backend.stage import fresh_tag
from tests.programs.codex_backend.toolbox import WEATHER, result
from tests.programs.vscode.stage import FIRST, PLAYER, STATUS, Stage

SECOND = "second"


@pytest.fixture(scope="module")
def second(editor: Stage) -> Iterator[str]:
    """A second window, until a test closes it."""
    known = editor.windows()
    editor.open(SECOND)
    assert eventually(lambda: editor.windows() == known + 1, 60)
    yield SECOND
    if SECOND in editor.hosts:
        editor.shut(SECOND)


def test_a_gateway_that_was_killed_and_is_back(editor: Stage) -> None:
    for sign in (signal.SIGKILL, signal.SIGTERM):
        editor.end_gateway(sign)
        editor.browser.wait(FIRST, f'{STATUS}[aria-label*="not connected"]', 60)
        editor.start_gateway()
        editor.has_models()
        assert _ask_plainly(editor)
        assert "connected to toolwire" in editor.status()


def test_a_gateway_that_is_killed_in_a_turn(editor: Stage) -> None:
    """Nobody wants the answer any more, so the provider is stopped, and nothing is asked twice."""
    tag = fresh_tag()
    opened = _client(editor)
    opened.say(f"SC=slow TAG={tag}")
    connection = opened.begin()
    assert editor.becomes(tag, "open")
    editor.end_gateway(signal.SIGKILL)
    connection.close()
    assert editor.becomes(tag, "cancelled")
    editor.start_gateway()
    editor.has_models()
    assert _ask_plainly(editor)
    assert len(editor.seen(tag)) == 1


def test_two_windows_lend_each_model_once(editor: Stage, second: str) -> None:
    listed = editor.models()
    assert listed.count(editor.model(PLAYER)) == 1
    assert _ask_plainly(editor)


def test_the_window_that_was_in_front_last_gets_the_request(editor: Stage, second: str) -> None:
    for page in (FIRST, second, FIRST):
        editor.focus(page)
        assert eventually(lambda page=page: _host(editor) == editor.hosts[page], 30)


def test_a_conversation_stays_in_its_window(editor: Stage, second: str) -> None:
    tag = fresh_tag()
    opened = _client(editor, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    answer = opened.ask()
    opened.give({call.id: result("get_weather", number, tag) for number, call in enumerate(answer.calls)})
    (host,) = _hosts(editor, tag)
    for page in (second, FIRST):
        editor.focus(page)
        assert eventually(lambda page=page: _host(editor) == editor.hosts[page], 30)
        assert opened.ask().text.startswith(f"ALLDONE {tag}")
        assert _hosts(editor, tag) == {host}
        opened.history.pop()  # back to the results


def test_a_window_that_is_closed(editor: Stage, second: str) -> None:
    """What it has begun is not asked again elsewhere: the client is told. What comes next goes to another window."""
    editor.focus(second)
    assert eventually(lambda: _host(editor) == editor.hosts[second], 30)
    tag = fresh_tag()
    opened = _client(editor)
    opened.say(f"SC=plain TAG={tag}")
    opened.ask()
    words = _closed_in_a_turn(editor, second)
    assert "upstream_cut" in words
    assert "disconnected" in words
    opened.say(f"SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    assert len(_hosts(editor, tag)) == 2


def _closed_in_a_turn(editor: Stage, page: str) -> str:
    """The end of an answer whose window is closed while it says it."""
    tag = fresh_tag()
    opened = _client(editor)
    opened.is_streamed = True
    opened.say(f"SC=slow TAG={tag}")
    connection = opened.begin()
    answer = connection.getresponse()
    assert answer.read(1)
    assert _hosts(editor, tag) == {editor.hosts[page]}
    editor.shut(page)
    words = answer.read().decode()
    connection.close()
    assert len(editor.seen(tag)) == 1
    return words


def _client(editor: Stage, tools: list[dict[str, Any]] | None = None) -> Chat:
    return Chat(editor, PLAYER, is_streamed=False, tools=tools)  # type: ignore[arg-type]


def _ask_plainly(editor: Stage) -> str:
    """The tag of a request that was answered."""
    tag = fresh_tag()
    opened = _client(editor)
    opened.say(f"SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    return tag


def _host(editor: Stage) -> int:
    """Who is asked now."""
    (host,) = _hosts(editor, _ask_plainly(editor))
    return host


def _hosts(editor: Stage, tag: str) -> set[int]:
    """The processes that played it: each window has one of its own."""
    return {record["pid"] for record in editor.seen(tag)}
