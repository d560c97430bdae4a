"""Copilot's own extension, without an account: its agent as a client of the gateway, and its provider as a back end behind it.

The model is the gateway's scripted one, whose script stands in the prompt.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.programs.codex_backend.toolbox import WEATHER, result
from tests.programs.stage import calling, prompt
from tests.programs.vscode.chatting import Conversing
from tests.programs.vscode.conftest import CLIENTS, Opening
from tests.programs.vscode.stage import DIALECTS, FIRST, STORED, Stage
from tests.thorough import some

_CITIES = [{"city": "Paris"}, {"city": 'Rome é中😀 "q" \\'}]
_OWN = "scripted/scripted"  # as the extension offers it


@pytest.fixture(scope="module")
def chat(editor: Stage) -> Conversing:
    editor.clear_notices()
    conversing = Conversing(editor.browser, FIRST)
    conversing.wake()
    return conversing


@pytest.mark.parametrize("model", [_OWN, *(f"scripted/by-{name}" for name in (*DIALECTS, STORED))])
def test_its_agent_runs_a_tool(editor: Stage, chat: Conversing, model: str) -> None:
    """A real one: the name of the file is in no prompt."""
    chat.clear()
    chat.choose(model)
    listing = calling("list_dir", arguments={"path": str(editor.project)})
    said = chat.ask(prompt(listing, {"text": "ALLDONE {{result:0:a-file[a-z-]+}}"}))
    assert "ALLDONE a-file-of-the-project" in said
    assert len(_answered(editor, model)) >= 2


def test_its_agent_gets_the_error(editor: Stage, chat: Conversing) -> None:
    chat.clear()
    chat.choose(_OWN)
    said = chat.ask(prompt({"error": {"status": 429, "message": "the mill is full", "code": "rate_limited"}}))
    assert "the mill is full" in said


def test_its_provider_calls_tools(editor: Stage, chat: Conversing, client: Opening) -> None:
    """By all three of the dialects that it speaks itself."""
    for dialect in DIALECTS:
        opened = client(f"scripted/by-{dialect}", WEATHER)
        calls = [{"name": "get_weather", "arguments": city} for city in _CITIES]
        marks = " ".join(f"{{{{result:{number}:FOUND_\\w+}}}}" for number in range(2))
        opened.say(prompt({"text": "Let me look.", "calls": calls}, {"text": f"ALLDONE {marks}"}))
        answer = opened.ask()
        assert (answer.text.strip(), answer.reason) == ("Let me look.", opened.called)
        assert [call.arguments for call in answer.calls] == _CITIES
        opened.give({call.id: result("get_weather", number, "tag") for number, call in enumerate(answer.calls)})
        answer = opened.ask()
        assert (answer.text, answer.reason) == ("ALLDONE FOUND_tag0 FOUND_tag1", opened.ended)
        assert all(tokens > 0 for tokens in answer.tokens)


@pytest.mark.parametrize("dialect", some(DIALECTS, ["chat"]))
def test_arguments_that_the_service_loses_are_requested_again(editor: Stage, chat: Conversing, dialect: str) -> None:
    """Its provider makes {} of what is no JSON."""
    broken = {"calls": [{"name": "get_weather", "arguments": '{"city": "Par'}]}
    whole = {"calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}]}
    opened = CLIENTS[dialect](editor, "scripted/by-chat", is_streamed=True, tools=WEATHER)  # type: ignore[arg-type]
    opened.say(_lenient(broken, whole))
    assert [call.arguments for call in opened.ask().calls] == [{"city": "Paris"}]


@pytest.mark.parametrize("dialect", some(DIALECTS, ["messages"]))
@pytest.mark.parametrize("status", [429, 400])
def test_failures_of_its_provider(editor: Stage, chat: Conversing, dialect: str, status: int) -> None:
    opened = CLIENTS[dialect](editor, "scripted/by-chat", is_streamed=False)  # type: ignore[arg-type]
    opened.say(prompt({"error": {"status": status, "message": "the mill is full"}}))
    answer = opened.bare()
    assert answer.status == status, answer.body


def _lenient(*turns: dict[str, Any]) -> str:
    """A script whose model does not mind that a call comes back otherwise than it was said."""
    return f"[[script:{base64.b64encode(json.dumps({'turns': turns}).encode()).decode()}]]"


def _answered(editor: Stage, model: str) -> list[Any]:
    log = (editor.folder / "gateway.log").read_text(encoding="utf-8")
    return [line for line in log.splitlines() if f" model={model} " in line and " 200 ok " in line]
