"""Tools that a system message of Chat Completions declares: every back end gets them, and their calls are calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolwire.types import ToolCall

from .harness import NAMES, Stage, UpstreamRequest, answered, calls_play, dialect_of, on_stage

FUNCTION = {"name": "weather", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
TOOL: dict[str, Any] = {"type": "function", "function": FUNCTION}
FLAT: dict[str, Any] = {"type": "function", **FUNCTION}
HI = {"role": "user", "content": "hi"}
HISTORIES: dict[str, list[dict[str, Any]]] = {
    "first": [{"role": "system", "tools": [TOOL]}, HI],
    "flat": [{"role": "system", "tools": [FLAT]}, HI],
    "with an empty content": [{"role": "system", "content": "", "tools": [TOOL]}, HI],
    "later": [{"role": "system", "content": "Be terse."}, HI, {"role": "system", "content": "", "tools": [TOOL]}],
}
BACKENDS = [f"{name}{ending}" for name in NAMES for ending in ("", "-off", "-repair")]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with on_stage(
        ("-off", {"guard": "off"}), ("-repair", {"guard": "repair"}), ("-kimi", {"profile": "kimi"})
    ) as opened:
        yield opened


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("backend", [*BACKENDS, "chat-kimi"])
def test_a_call_of_a_declared_tool_is_a_call(stage: Stage, backend: str, history: str) -> None:
    body = {"messages": HISTORIES[history], "tool_choice": "required", "stream": True}
    answer = stage.ask("chat", backend, body, calls_play(dialect_of(backend), ("call_1", "weather", ["{}"])))
    calls = [part for part in answered("chat", answer) if isinstance(part, ToolCall)]
    assert [(call.name, call.raw) for call in calls] == [("weather", "{}")]
    sent = stage.received()[-1].json
    if backend == "chat-kimi":
        assert [message["role"] for message in sent["messages"]] == [message["role"] for message in HISTORIES[history]]
        assert [message["tools"] for message in sent["messages"] if "tools" in message] == [[TOOL]]
        assert "tools" not in sent
    else:
        assert UpstreamRequest(dialect_of(backend), sent).tools == ["weather"]
        assert '"tools":[' not in str(sent.get("messages"))
        assert all(message.get("content") for message in sent.get("messages", sent.get("input")))
    assert sent["tool_choice"] in ("required", {"type": "any"})


@pytest.mark.parametrize("backend", ["chat", "chat-off", "messages", "responses"])
def test_a_flat_tool_is_offered_in_the_form_of_the_back_end(stage: Stage, backend: str) -> None:
    body = {"messages": [HI], "tools": [FLAT], "tool_choice": {"type": "function", "name": "weather"}, "stream": True}
    answer = stage.ask("chat", backend, body, calls_play(dialect_of(backend), ("call_1", "weather", ["{}"])))
    assert [part.name for part in answered("chat", answer) if isinstance(part, ToolCall)] == ["weather"]
    sent = UpstreamRequest(dialect_of(backend), stage.received()[-1].json)
    assert (sent.tools, sent.choice) == (["weather"], "weather")
