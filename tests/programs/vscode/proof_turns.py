"""Turns on a model of VS Code: what the client reads, in its own dialect, and what the model's provider was given."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from tests.programs.codex_backend.toolbox import WEATHER, result
from tests.programs.vscode.conftest import CLIENTS, Opening
from tests.programs.vscode.stage import COUNTER, PLAYER, Stage

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_CITIES = [{"city": "Paris"}, {"city": 'Zürich 中😀 "q" \\'}]


def test_a_plain_turn(editor: Stage, client: Opening, tag: str) -> None:
    opened = client()
    opened.say(f"SC=plain TAG={tag}")
    answer = opened.ask()
    assert (answer.text, answer.calls, answer.reason) == (f"Hello {tag} world.", [], opened.ended)
    assert all(tokens > 0 for tokens in answer.tokens)  # VS Code's own count, as the provider tells none
    assert [record["state"] for record in editor.seen(tag)] == ["done"]


def test_reported_usage_is_forwarded(client: Opening, tag: str) -> None:
    opened = client(COUNTER)
    opened.say(f"SC=counted TAG={tag}")
    answer = opened.ask()
    assert (answer.text, answer.tokens) == (f"Hello {tag} world.", (100, 20))


def test_the_judge_finds_no_fault(client: Opening, tag: str) -> None:
    """The same without an SDK."""
    opened = client(tools=WEATHER)
    for scene in ("plain", "pair", "think"):
        opened.history.clear()
        opened.say(f"SC={scene} TAG={tag}")
        assert opened.judged().status == 200


def test_calls_and_their_results(editor: Stage, client: Opening, tag: str) -> None:
    opened = client(tools=WEATHER)
    opened.history.append({"role": "user", "content": "Be brief."})
    opened.say(f"SC=pair TAG={tag}")
    answer = opened.ask()
    assert (answer.text.strip(), answer.reason) == ("Let me check.", opened.called)
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", city) for city in _CITIES]
    results = [result("get_weather", number, tag) for number in range(2)]
    opened.give(dict(zip([call.id for call in answer.calls], results, strict=True)))
    answer = opened.ask()
    assert (answer.text, answer.calls, answer.reason) == (f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1", [], opened.ended)
    _check_history(editor.seen(tag)[-1], results)


def _check_history(asked: dict[str, Any], results: list[str]) -> None:
    """The provider has the calls and, first in one message, their results."""
    *_, calling, last = asked["messages"]
    calls = [part for part in calling["content"] if "call" in part]
    assert [(call["name"], call["input"]) for call in calls] == [("get_weather", city) for city in _CITIES]
    given = last["content"][:2]
    assert [part["result"] for part in given] == [call["call"] for call in calls]
    assert [part["content"] for part in given] == [[{"text": text}] for text in results]


def test_tools_reach_the_provider(editor: Stage, client: Opening, tag: str) -> None:
    opened = client(tools=WEATHER)
    opened.say(f"SC=plain TAG={tag}")
    opened.ask()
    (tool,) = editor.seen(tag)[-1]["tools"]
    assert (tool["name"], tool["description"]) == ("get_weather", "The weather in a city.")
    assert tool["inputSchema"]["required"] == ["city"]


def test_lost_arguments_are_requested_again(editor: Stage, client: Opening, tag: str) -> None:
    opened = client(tools=WEATHER)
    opened.say(f"SC=careless TAG={tag}")
    answer = opened.ask()
    assert [(call.name, call.arguments) for call in answer.calls] == [("get_weather", {"city": "Paris"})]
    assert len(editor.seen(tag)) == 2


def test_an_image_arrives(editor: Stage, client: Opening, tag: str) -> None:
    opened = client()
    opened.history.append({"role": "user", "content": _image_and(f"SC=plain TAG={tag}", opened.dialect)})
    assert opened.ask().text == f"Hello {tag} world."
    image = base64.b64decode(_PIXEL)
    expected = {"mime": "image/png", "size": len(image), "sha256": hashlib.sha256(image).hexdigest()}
    assert expected in editor.seen(tag)[-1]["messages"][-1]["content"]


def _image_and(text: str, dialect: str) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{_PIXEL}"
    source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    return {
        "chat": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}],
        "responses": [
            {"type": "input_image", "image_url": url, "detail": "auto"},
            {"type": "input_text", "text": text},
        ],
        "messages": [{"type": "image", "source": source}, {"type": "text", "text": text}],
    }[dialect]


def test_thoughts_are_kept_apart(client: Opening, tag: str) -> None:
    opened = client()
    opened.say(f"SC=think TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    opened.history.clear()
    opened.say(f"SC=think TAG={tag}")
    assert "Thinking hard" in opened.bare().body.decode()


@pytest.mark.parametrize("name", ["played/player", "player-4.5", "player-4-5", "player-4-5-20260101"])
def test_other_spellings_of_its_name(editor: Stage, tag: str, name: str) -> None:
    opened = CLIENTS["chat"](editor, name, is_streamed=False)  # type: ignore[arg-type]
    opened.say(f"SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."


def test_the_gateways_own_models_are_not_lent_back(editor: Stage) -> None:
    """Those of the extension, which VS Code has, too."""
    listed = editor.models()
    assert editor.model(PLAYER) in listed
    assert "scripted/scripted" in listed
    assert editor.model("scripted/scripted") not in listed


def test_the_command_line_sees_it(editor: Stage) -> None:
    config = ["--config", str(editor.folder / "toolwire.toml")]
    said = editor.toolwire("vscode", "status", "--program", str(editor.program), *config)
    assert "MISSING" not in said
    assert editor.model(PLAYER) in said
    assert "it may ask" in editor.status()
