"""Thinking that is bound to everything before it survives the way through the gateway, in every client dialect and over several turns.

The upstream (strict/bound_thinking.py) refuses a thinking block if anything before it changed. So every repair and injection of the gateway
must write the same prefix in each request of a conversation, or give up the thinking that it voids, with a report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from tests.contract.strict.bound_thinking import BoundModel, bound_model, text, thinking, thoughts_in, tool_use
from tests.contract.strict.dialect_clients import CLIENTS, Body, read
from tests.server.harness import Answer, Upstream, ask, gateway, reply, server_config
from toolwire.config.file import BackendConfig, Config, SearchConfig

MODEL = "claude-opus-5-5"
ID = "toolu_01Ab3dEf5hIj7k"
TOOLS: dict[str, Body] = {
    "read": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "list": {"type": "object", "properties": {}},
}


class Stage(NamedTuple):
    model: BoundModel
    port: int
    answers: list[Answer]

    def ask(self, path: str, body: Body, headers: dict[str, str] | None = None) -> Body:
        answer = ask(self.port, "POST", path, body, headers or {})
        self.answers.append(answer)
        assert answer.status == 200, (answer.body, self.model.refused)
        return read(answer.body)

    def client(self, dialect: str, **members: Any) -> Any:
        return CLIENTS[dialect](f"claude/{MODEL}", self.ask, TOOLS, **members)

    def losses(self) -> str:
        return self.answers[-1].headers.get("x-toolwire-loss", "")


@contextmanager
def stage(search: SearchConfig | None = None, **fields: Any) -> Iterator[Stage]:
    with bound_model() as (model, url):
        backend = BackendConfig(name="claude", kind="anthropic", base_url=url, retries=0, **fields)
        config = Config(server=server_config(), backends=(backend,), **({} if search is None else {"search": search}))
        with gateway(config) as running:
            yield Stage(model, running.port, [])


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize("guard", ["off", "repair", "retry"])
def test_no_thinking_is_voided_over_several_turns(dialect: str, guard: str) -> None:
    with stage(guard=guard) as stage_:
        stage_.model.plays = [
            [thinking("Look first."), tool_use(f"{ID}1", "read", path="a.py", **{"b": 1, "a": 2})],
            [thinking(), text("Reading more."), tool_use(f"{ID}2", "read", path="b.py"), tool_use(f"{ID}3", "list")],
            [thinking("Now I know."), text("It is fine.")],
            [thinking("Again."), tool_use(f"{ID}4", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        client.say("Check a.py.")
        client.give({f"{ID}1": "x = 1"})
        client.give({f"{ID}2": "y = 2", f"{ID}3": "a.py b.py"})
        client.say("And now?")
        client.give({f"{ID}4": "a.py b.py"})
        assert stage_.model.refused == []
        # Clients of Chat Completions have no place for thinking; the gateway stores that of turns with calls.
        assert thoughts_in(stage_.model.seen[-1]) == {"chat": 3 if guard != "off" else 0}.get(dialect, 4)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_thinking_of_a_correction_is_given_up_with_a_report(dialect: str) -> None:
    """The model made it after rounds that the client never sees."""
    with stage(guard="retry") as stage_:
        stage_.model.plays = [
            [thinking("Look first."), tool_use(f"{ID}1", "read", file="a.py")],
            [thinking("The path is missing."), tool_use(f"{ID}2", "read", path="a.py")],
            [thinking("Good."), tool_use(f"{ID}3", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        (call,) = client.say("Check a.py.")
        client.give({call.id: "x = 1"})
        assert stage_.answers[0].headers["x-toolwire-loss"]
        client.give({f"{ID}3": "a.py"})
        assert stage_.model.refused == []
        assert thoughts_in(stage_.model.seen[-1]) == (1 if dialect == "chat" else 2)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_note_about_repeated_calls_stays_where_it_is(dialect: str) -> None:
    with stage(guard="retry") as stage_:
        stage_.model.plays = [
            *([thinking(f"Once more {number}."), tool_use(f"{ID}{number}", "list")] for number in range(6)),
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        calls = client.say("List.")
        while calls:
            calls = client.give({calls[0].id: "a.py"})
        assert stage_.model.refused == []
        assert "[Notice:" in str(stage_.model.seen[-1])


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_simulated_tools_write_the_same_history_each_time(dialect: str) -> None:
    with stage(tools="simulate") as stage_:
        call = '<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>'
        stage_.model.plays = [
            [thinking("Look."), text("Reading." + call)],
            [thinking("More."), text(call)],
            [thinking("Good."), text("It is fine.")],
            [thinking("Again."), text(call)],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        (made,) = client.say("Check a.py.")
        (made,) = client.give({made.id: "x = 1"})
        client.give({made.id: "x = 2"})
        (made,) = client.say("And now?")
        client.give({made.id: "x = 3"})
        assert stage_.model.refused == []


SEARCHES: dict[str, Body] = {
    "messages": {"type": "web_search_20250305", "name": "web_search"},
    "responses": {"type": "web_search"},
}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", SEARCHES)
def test_thinking_after_a_search_of_the_gateway_is_given_up_with_a_report(dialect: str) -> None:
    engine = Upstream()
    found = {"results": [{"title": "Tides", "url": "https://example.org", "content": "High."}]}
    engine.on("/search?q=tides&format=json", [reply(200, json.dumps(found).encode())])
    search = SearchConfig(kind="searxng", url=engine.url, results=5)
    with stage(search, tool_kinds="functions") as stage_:
        stage_.model.plays = [
            [thinking("Search."), tool_use(f"{ID}1", "web_search", query="tides")],
            [thinking("More."), tool_use(f"{ID}2", "web_search", query="tides")],
            [thinking("Found."), text("High tide."), tool_use(f"{ID}3", "list")],
            [thinking("Listed."), tool_use(f"{ID}4", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        client.tools.append(SEARCHES[dialect])
        client.say("Tides?")
        assert "reasoning" in stage_.losses()
        client.give({f"{ID}3": "a.py"})
        client.give({f"{ID}4": "a.py"})
        assert stage_.model.refused == []
        assert thoughts_in(stage_.model.seen[-1]) == 2
    engine.close()


CHOICES: dict[str, tuple[Body, Body]] = {
    "chat": (
        {"tool_choice": "required"},
        {
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "list"}}]},
            }
        },
    ),
    "responses": (
        {"tool_choice": "required"},
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "list"}]}},
    ),
    "messages": ({"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "tool", "name": "list"}}),
    "gemini": (
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["list"]}}},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_choice_among_tools_changes_neither_the_list_nor_is_it_refused(dialect: str) -> None:
    with stage() as stage_:
        stage_.model.plays = [
            [thinking("Look."), tool_use(f"{ID}1", "read", path="a.py")],
            [thinking("List."), tool_use(f"{ID}2", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        required, some = CHOICES[dialect]
        client = stage_.client(dialect)
        client.say("Check a.py.", **required)
        client.give({f"{ID}1": "x = 1"}, **some)
        client.give({f"{ID}2": "a.py"})
        assert stage_.model.refused == []
        assert thoughts_in(stage_.model.seen[-1]) == 2
        assert all(body["tools"] == stage_.model.seen[0]["tools"] for body in stage_.model.seen)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_model_that_ignores_a_required_call_is_reminded(dialect: str) -> None:
    with stage(guard="retry") as stage_:
        stage_.model.plays = [
            [thinking("No need."), text("I know it.")],
            [thinking("I must."), tool_use(f"{ID}1", "list")],
            [thinking("Done."), tool_use(f"{ID}2", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        (call,) = client.say("List.", **CHOICES[dialect][0])
        client.give({call.id: "a.py"})
        client.give({f"{ID}2": "a.py"})
        assert stage_.model.refused == []


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_a_prefix_that_the_client_changed_costs_its_thinking_and_a_report(dialect: str) -> None:
    with stage() as stage_:
        stage_.model.plays = [
            [thinking("Look."), tool_use(f"{ID}1", "read", path="a.py")],
            [thinking("Good."), tool_use(f"{ID}2", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        client.say("Check a.py.")
        client.give({f"{ID}1": "x = 1"})
        first = next(item for item in client.history if item["role"] == "user")
        first["parts" if dialect == "gemini" else "content"] = (
            [{"text": "Check b.py."}] if dialect == "gemini" else "Check b.py."
        )
        client.give({f"{ID}2": "a.py"})
        assert len(stage_.model.refused) == 1
        assert "bound to a different conversation" in stage_.model.refused[0]
        assert {"refused.binding", "reasoning.dropped"} <= set(stage_.losses().split(", "))
        assert len(stage_.model.dropped) == 2


@pytest.mark.slow
@pytest.mark.parametrize("dialect", CLIENTS)
def test_an_interrupted_call_is_repaired_in_the_same_way_each_time(dialect: str) -> None:
    with stage() as stage_:
        stage_.model.plays = [
            [
                thinking("Look."),
                text("First this."),
                tool_use(f"{ID}1", "read", path="a.py"),
                tool_use(f"{ID}2", "list"),
            ],
            [thinking("Stopped."), text("Well.")],
            [thinking("Again."), tool_use(f"{ID}3", "list")],
            [thinking("Done."), text("Bye.")],
        ]
        client = stage_.client(dialect)
        client.say("Check a.py.")
        client.say("Stop.")
        client.say("Now list.")
        client.give({f"{ID}3": "a.py"})
        assert stage_.model.refused == []
        assert thoughts_in(stage_.model.seen[-1]) == (2 if dialect == "chat" else 3)


def test_a_streamed_answer_reports_dropped_thinking() -> None:
    with stage() as stage_:
        stage_.model.plays = [[thinking("Look."), text("Fine.")], [thinking("Done."), text("Bye.")]]
        client = stage_.client("messages")
        client.say("Check a.py.")
        client.history[0]["content"] = "Check b.py."
        controls: Body = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        body = {"model": f"claude/{MODEL}", "max_tokens": 100, "stream": True, "thinking": controls}
        messages = [*client.history, {"role": "user", "content": "And?"}]
        beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        answer = ask(stage_.port, "POST", "/v1/messages", {**body, "messages": messages}, beta)
        assert stage_.model.refused == []
        assert b"reasoning.dropped" in answer.body
        assert b"input_transformations" in answer.body


def test_a_client_that_wants_the_error_gets_it() -> None:
    with stage() as stage_:
        stage_.model.plays = [[thinking("Look."), tool_use(f"{ID}1", "list")]]
        strict: Body = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
        client = stage_.client("messages")
        client.say("List.")
        client.history[0]["content"] = "List it."
        body = {"model": f"claude/{MODEL}", "max_tokens": 100, "messages": client.history[:2], **strict}
        body["messages"].append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"{ID}1", "content": "a"}]}
        )
        beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
        answer = ask(stage_.port, "POST", "/v1/messages", body, beta)
        assert answer.status == 400
        assert b"bound to a different conversation" in answer.body
        assert len(stage_.model.refused) == 1
