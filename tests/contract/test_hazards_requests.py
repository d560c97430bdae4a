"""Hazards in requests of clients: names, numbers, histories, kinds of tools, markers; through a running gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.harness import reply
from toolwire.types import Text, ToolCall

from .harness import (
    CROSSED,
    NAMES,
    PAIRS,
    SCHEMA,
    HistoryEntry,
    Stage,
    UpstreamRequest,
    answered,
    calls_play,
    dialect_of,
    on_stage,
    talk,
    text_play,
)

USER = HistoryEntry("user", "hi")
OK = HistoryEntry("result", "done", "call_1")
each_pair = pytest.mark.parametrize(("client", "backend"), PAIRS)
each_crossing = pytest.mark.parametrize(("client", "backend"), CROSSED)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with on_stage(("-anew", {"verbatim": "never"}), ("-functions", {"tool_kinds": "functions"})) as running:
        yield running


def lost(answer: Any) -> list[str]:
    return [one.partition(";")[0] for one in answer.headers.get("x-toolwire-loss", "").split(", ")]


@pytest.mark.parametrize("backend", NAMES)
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_H003_merged_arguments_in_a_history_are_no_server_error(stage: Stage, client: str, backend: str) -> None:
    """Two calls that somebody merged a turn ago: the turn after it must not fail, and nothing of them may be lost."""
    merged = '{"city": "a"}{"city": "b"}'
    body, answer = stage.sent(
        client, backend, talk(client, USER, HistoryEntry("call", merged, "call_1", "weather"), OK)
    )
    asked = UpstreamRequest(backend, body)
    ((call_id, name, value),) = asked.calls
    assert (name, value) == ("weather", {"_raw": merged})
    assert asked.results == [call_id]
    assert "history.arguments" in lost(answer)


def test_H003_arguments_that_are_no_string_are_wrapped_and_reported(stage: Stage) -> None:
    body = talk("chat", USER, HistoryEntry("call", "{}", "call_1", "weather"), OK)
    body["messages"][1]["tool_calls"][0]["function"]["arguments"] = 7
    sent, answer = stage.sent("chat", "chat", body)
    ((_, name, value),) = UpstreamRequest("chat", sent).calls
    assert (name, value) == ("weather", {"_raw": "7"})
    assert "history.arguments" in lost(answer)


NAMED = {"files/read.v2": SCHEMA, "mcp__plugin_" + "a_server_with_a_long_name_" * 3 + "__look.up": SCHEMA}


@pytest.mark.parametrize("backend", ["chat", "responses", "messages"])
@pytest.mark.parametrize("client", ["chat", "responses", "messages"])
@pytest.mark.parametrize("name", NAMED, ids=["dots", "long"])
def test_H052_H053_H056_a_name_is_adapted_everywhere_and_restored(
    stage: Stage, client: str, backend: str, name: str
) -> None:
    choice: dict[str, Any] = {
        "chat": {"type": "function", "function": {"name": name}},
        "responses": {"type": "function", "name": name},
        "messages": {"type": "tool", "name": name},
    }
    history = (USER, HistoryEntry("call", "{}", "call_1", name), OK, USER)
    body = talk(client, *history, tools=NAMED, tool_choice=choice[client])
    asked = UpstreamRequest(backend, stage.sent(client, backend, body)[0])
    label = asked.choice
    assert len(label) <= (128 if backend == "messages" else 64)
    assert label.replace("_", "").replace("-", "").isalnum()
    assert label in asked.tools
    assert len(set(asked.tools)) == len(NAMED)
    assert [called for _, called, _ in asked.calls] == [label]
    answer = stage.ask(client, backend, body, calls_play(backend, ("call_9", label, ["{}"])))
    (call,) = answered(client, answer)
    assert isinstance(call, ToolCall)
    assert call.name == name


@pytest.mark.parametrize("backend", ["messages", "messages-anew"])
def test_H056_a_typed_tool_keeps_the_name_of_its_type(stage: Stage, backend: str) -> None:
    typed = [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 2},
        {"type": "bash_20250124", "name": "bash"},
    ]
    body = talk("messages", USER, tools={"files.read": SCHEMA})
    body["tools"] += typed
    sent, _ = stage.sent("messages", backend, body)
    assert sent["tools"][1:] == typed


def test_H059_a_namespace_that_two_searches_found_is_offered_once(stage: Stage) -> None:
    space = {
        "type": "namespace",
        "name": "agents",
        "description": "",
        "tools": [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("open", "close")],
    }
    body = talk("responses", USER, tools={})
    body["tools"] = [{"type": "tool_search", "execution": "client", "description": "Find.", "parameters": SCHEMA}]
    for number in ("1", "2"):
        found = {"call_id": f"call_{number}", "execution": "client", "status": "completed"}
        body["input"] += [
            {"type": "tool_search_call", **found, "arguments": {"city": "x"}},
            {"type": "tool_search_output", **found, "tools": [space]},
        ]
    for backend in ("chat", "messages", "responses-functions"):
        asked = UpstreamRequest(dialect_of(backend), stage.sent("responses", backend, body)[0])
        assert sorted(asked.tools) == ["agents__close", "agents__open", "tool_search"]
    body["input"].append({"role": "user", "content": "go"})
    answer = stage.ask("responses", "chat", body, calls_play("chat", ("call_9", "agents__close", ["{}"])))
    (call,) = answered("responses", answer)
    assert isinstance(call, ToolCall)
    assert (call.namespace, call.name) == ("agents", "close")


UNKNOWN: dict[str, dict[str, Any]] = {
    "chat": {"type": "quantum_search", "quantum_search": {"depth": 3}},
    "responses": {"type": "quantum_search", "depth": 3},
    "messages": {"type": "quantum_search_20300101", "name": "quantum"},
}


@each_pair
def test_H055_H097_a_tool_of_unknown_type_is_forwarded_or_reported(stage: Stage, client: str, backend: str) -> None:
    body = talk(client, USER)
    body["tools"].insert(0, UNKNOWN[client])
    sent, answer = stage.sent(client, backend, body)
    if client == backend:
        assert sent["tools"][0] == UNKNOWN[client]
        assert "x-toolwire-loss" not in answer.headers
        sent, answer = stage.sent(client, f"{backend}-functions", body)
    assert UpstreamRequest(backend, sent).tools == ["weather", "now"]
    assert lost(answer) == ["tool.hosted"]


@each_pair
def test_H055_tools_are_never_dropped_for_being_many_or_long(stage: Stage, client: str, backend: str) -> None:
    tools = {
        f"mcp__a_server_with_a_name_of_some_length__and_a_tool_that_has_one_too_{number}": SCHEMA
        for number in range(90)
    }
    sent, answer = stage.sent(client, backend, talk(client, USER, tools=tools))
    assert len(set(UpstreamRequest(backend, sent).tools)) == 90
    assert "x-toolwire-loss" not in answer.headers


BIG = '{"id": 10000000000000001, "n": -12345678901234567890123, "x": 1.10, "whole": 10}'


@each_pair
def test_H072_numbers_beyond_doubles_are_exact_in_a_history(stage: Stage, client: str, backend: str) -> None:
    body = talk(client, USER, HistoryEntry("call", BIG, "call_1", "weather"), OK)
    stage.sent(client, backend, body)
    wire = stage.received()[-1].body.decode()
    for digits in ("10000000000000001", "-12345678901234567890123"):
        assert digits in wire
    assert "10.0" not in wire
    ((_, _, value),) = UpstreamRequest(backend, json.loads(wire)).calls
    assert (value["id"], value["whole"]) == (10000000000000001, 10)


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_H086_reasoning_dropped_for_a_forced_call_is_reported(stage: Stage, client: str) -> None:
    effort: dict[str, Any] = {"chat": {"reasoning_effort": "high"}, "responses": {"reasoning": {"effort": "high"}}}
    body = talk(client, USER, tool_choice="required", **effort[client])
    sent, answer = stage.sent(client, "messages", body)
    assert sent["tool_choice"] == {"type": "any"}
    assert "thinking" not in sent
    assert "thinking" in lost(answer)


@pytest.mark.parametrize("client", ["responses", "messages"])
def test_H111_H112_a_template_server_gets_texts_and_one_instruction_at_the_start(stage: Stage, client: str) -> None:
    history = (
        USER,
        HistoryEntry("call", '{"city": "x"}', "call_1", "weather"),
        OK,
        HistoryEntry("system", "Be brief."),
        HistoryEntry("user", "go"),
    )
    body = talk(client, *history, **({"instructions": "S"} if client == "responses" else {"system": "S"}))
    sent, answer = stage.sent(client, "chat", body)
    messages = sent["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "user"]
    assert messages[0]["content"] == "S"
    assert messages[2]["content"] == ""
    assert [part["text"] for part in messages[4]["content"]] == ["<system>\nBe brief.\n</system>", "go"]
    assert lost(answer) == ["role.system"]


@pytest.mark.parametrize("client", ["responses", "messages"])
def test_H112_a_compacted_history_begins_with_a_user_message(stage: Stage, client: str) -> None:
    body = talk(client, HistoryEntry("call", "{}", "call_1", "weather"), OK)
    sent, _ = stage.sent(client, "chat", body)
    assert [message["role"] for message in sent["messages"]][:2] == ["user", "assistant"]


MARK = {"cache_control": {"type": "ephemeral"}}


def marks(value: Any) -> int:
    """How many cache markers are anywhere in it."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(marks(inner) for inner in value.values())
    return sum(marks(inner) for inner in value) if isinstance(value, list) else 0


def marked(client: str) -> dict[str, Any]:
    body = talk(client, USER, HistoryEntry("call", "{}", "call_1", "weather"), OK, HistoryEntry("user", "go"))
    if client == "messages":
        body["system"] = [{"type": "text", "text": "S", **MARK}]
        body["tools"][1] |= MARK
        body["messages"][0]["content"][0] |= MARK
        body["messages"][2]["content"][-1] |= MARK
    elif client == "chat":
        body["messages"][0]["content"] = [{"type": "text", "text": "hi", **MARK}]
    return body


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("backend", ["messages", "messages-anew"])
def test_H143_no_cache_marker_is_added_or_moved(stage: Stage, client: str, backend: str) -> None:
    body = marked(client)
    sent, _ = stage.sent(client, backend, body)
    assert marks(sent) <= marks(body)
    if client == "messages":
        assert marks(sent) == 4
        assert (sent["system"], sent["tools"], sent["messages"]) == (body["system"], body["tools"], body["messages"])


SEARCHES: dict[str, dict[str, Any]] = {
    "responses": {"type": "web_search"},
    "messages": {"type": "web_search_20250305", "name": "web_search"},
}


@pytest.mark.parametrize("client", SEARCHES)
def test_H107_a_back_end_that_refuses_searches_is_not_offered_one(stage: Stage, client: str) -> None:
    body = talk(client, USER)
    body["tools"].append(SEARCHES[client])
    sent, answer = stage.sent(client, f"{client}-functions", body)
    assert UpstreamRequest(client, sent).tools == ["weather", "now"]
    assert lost(answer) == ["tool.hosted"]


@each_crossing
def test_H166_no_back_end_gets_ids_of_what_another_one_keeps(stage: Stage, client: str, backend: str) -> None:
    body = talk(client, USER)
    if client == "responses":
        thought = {"type": "reasoning", "id": "rs_68af", "summary": [{"type": "summary_text", "text": "hm"}]}
        said = {
            "type": "message",
            "id": "msg_68af",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "a"}],
        }
        body["input"] += [thought, said, {"role": "user", "content": "go"}]
    elif client == "messages":
        thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
        body["messages"] += [
            {"role": "assistant", "content": [thought, {"type": "text", "text": "a"}]},
            body["messages"][0],
        ]
    else:
        said = {"role": "assistant", "content": "a", "reasoning_content": "hm"}
        body["messages"] += [said, body["messages"][0]]
    wire = json.dumps(stage.sent(client, backend, body)[0])
    assert "68af" not in wire
    assert "c2ln" not in wire


REFUSALS: dict[str, tuple[str, int, str, str]] = {  # (dialect, status, words, what is changed)
    "H084": ("responses", 400, "reasoning `encrypted_content` was not issued to this caller", "reasoning"),
    "H166": ("responses", 404, "Item with id 'rs_1' not found. Items are not persisted.", "reasoning"),
    "H081": ("messages", 400, "messages.1.content.0: Invalid `signature` in `thinking` block", "reasoning"),
    "H111": ("chat", 500, "Cannot subscript null", "texts"),
    "H112": ("chat", 400, "Jinja Exception: System message must be at the beginning.", "roles"),
    "H141": ("chat", 400, "unknown variant `developer`, expected one of `system`, `user`", "roles"),
}


def refused(dialect: str) -> dict[str, Any]:
    """A request in which each of these finds what it refuses."""
    call = HistoryEntry("call", "{}", "call_1", "weather")
    if dialect == "chat":
        return talk(
            "chat",
            HistoryEntry("developer", "S"),
            USER,
            call,
            OK,
            HistoryEntry("system", "Be brief."),
            HistoryEntry("user", "go"),
        )
    body = talk(dialect, USER, call, OK)
    if dialect == "responses":
        body["input"].insert(1, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
    else:
        body["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
    return body


@pytest.mark.parametrize("backend", ["", "-anew"], ids=["verbatim", "anew"])
@pytest.mark.parametrize("case", REFUSALS)
def test_H081_H084_H111_H112_H141_H166_a_rejection_that_another_form_avoids_is_retried(
    stage: Stage, case: str, backend: str
) -> None:
    dialect, status, words, change = REFUSALS[case]
    before, count = stage.metric("toolwire_losses_total", feature=f"refused.{change}"), len(stage.received())
    refusal: list[Any] = [reply(status, json.dumps({"error": {"message": words}}).encode())]
    answer = stage.ask(dialect, f"{dialect}{backend}", refused(dialect), refusal, text_play(dialect))
    (part,) = answered(dialect, answer)
    assert isinstance(part, Text)
    assert part.text == "fine"
    assert lost(answer) == [f"refused.{change}"]
    stage.wait_metric(before + 1, "toolwire_losses_total", feature=f"refused.{change}")
    first, second = stage.received()[count:]
    assert first.json != second.json
    assert UpstreamRequest(dialect, second.json).calls == UpstreamRequest(dialect, first.json).calls
    assert UpstreamRequest(dialect, second.json).results == ["call_1"]
