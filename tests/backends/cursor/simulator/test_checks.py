from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import Client, blobs_of, opening, tool
from tests.backends.cursor.simulator.single_run import QUICK, TRANSPORTS, run_once
from toolwire.backends.cursor.simulator.script import Say, Seen, play
from toolwire.backends.cursor.simulator.settings import Settings
from toolwire.backends.cursor.wire import agent

pytestmark = pytest.mark.slow  # starts a server

BARE = {"code": "resource_exhausted", "message": "Error"}


def call(call_id: str, **more: Any) -> dict[str, Any]:
    part = {"type": "tool-call", "toolCallId": call_id, "toolName": "look", "args": {}, **more}
    return {"role": "assistant", "content": [part]}


def result(call_id: str) -> dict[str, Any]:
    part = {"type": "tool-result", "toolCallId": call_id, "toolName": "look", "result": "r"}
    return {"role": "tool", "id": call_id, "content": [part]}


def refusal(first: Any, blobs: dict[bytes, bytes] | None = None, tools: Any = (), **headers: str) -> dict[str, Any]:
    client, journal = run_once(
        first=first, tools=tools, model=play(Say("ok")), prepare=lambda c: c.blobs.update(blobs or {}), **headers
    )
    assert journal.runs[0].state == ("refused" if client.error else "ended")
    return client.error


def history(*messages: dict[str, Any]) -> dict[str, Any]:
    roots = [root for message in messages for root in blobs_of([message])]
    return refusal(opening(roots=roots), blobs_of(messages))


def number(error: dict[str, Any]) -> tuple[str, str]:
    return error["code"], error["details"][0]["debug"]["error"]


def test_a_good_run_is_not_refused() -> None:
    assert refusal(opening()) == {}
    assert history({"role": "user", "content": "a"}, call("c1"), result("c1")) == {}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_conversation_state_must_be_there_even_if_it_is_empty(transport: str) -> None:
    first = opening(conversation_state=None)
    assert b"\n\x00" not in first.SerializeToString()[:6]
    client, _ = run_once(transport, first=first)
    assert client.error == {"code": "invalid_argument", "message": "Conversation state is required"}


def test_an_action_must_be_there() -> None:
    assert refusal(opening(action=None))["code"] == "invalid_argument"


def test_what_is_only_for_some_is_refused() -> None:
    assert "--system-prompt" in refusal(opening(custom_system_prompt="x"))["message"]
    excluded = refusal(opening(exclude_workspace_context=True))
    assert (excluded["code"], excluded["message"][:27]) == ("invalid_argument", "Workspace context exclusion")


def test_a_blob_is_named_by_its_hash() -> None:
    payload = b'{"role":"user","content":"hi"}'
    missing = hashlib.sha256(payload).digest()
    inlined = refusal(opening(roots=[payload]))
    assert (inlined["code"], inlined["message"][:15]) == ("internal", "Blob not found:")
    assert refusal(opening(roots=[missing]))["message"] == f"Blob not found: {missing.hex()}"
    assert refusal(opening(roots=[missing]), {missing: b"else"})["message"] == f"Blob not found: {missing.hex()}"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "wizard", "content": "x"},
        {"role": "user"},
        {"role": "tool", "content": "x"},
        {"role": "user", "content": 7},
        {"role": "user", "content": [{"type": "tool-call"}]},
        {"role": "assistant", "content": [{"type": "tool_use"}]},
        call("c1", args="{}"),
    ],
)
def test_root_messages_have_a_shape(message: dict[str, Any]) -> None:
    assert history(message)["code"] == "internal"


def test_a_root_message_is_json() -> None:
    blobs = {hashlib.sha256(b"{").digest(): b"{"}
    assert refusal(opening(roots=blobs), blobs)["message"] == "Failed to parse root prompt message"


@pytest.mark.parametrize(
    "messages",
    [
        [call("c|1"), result("c|1")],
        [call("c1\nfc"), result("c1\nfc")],
        [call("")],
        [call("c1")],
        [result("c1")],
        [call("c1"), {"role": "user", "content": "x"}, result("c1")],
        [call("c1"), result("c1"), result("c1")],
        [call("c1"), result("c1"), call("c1"), result("c1")],
    ],
)
def test_calls_and_results_that_do_not_pair_are_refused_without_a_word(messages: list[dict[str, Any]]) -> None:
    assert json.dumps(history(*messages)) == json.dumps(BARE)


@pytest.mark.parametrize("name", ["read", "Grep", "web_search", "a b", "a.b", "x" * 65, ""])
def test_names_of_tools_that_a_provider_does_not_take(name: str) -> None:
    assert refusal(opening(tools=[tool(name)]), tools=[tool(name)])["code"] == "invalid_argument"


def test_schemas_of_tools() -> None:
    for schema in ("{", "[]", '"x"'):
        assert refusal(opening(tools=[tool(schema=schema)]), tools=[])["code"] == "invalid_argument"
    value: Any = {"struct_value": {}}
    assert refusal(opening(tools=[tool(schema=None, input_schema=value)]), tools=[]) == {}
    assert refusal(opening(tools=[tool(schema=None)]), tools=[])["code"] == "invalid_argument"
    assert "Duplicate" in refusal(opening(tools=[tool(), tool()]), tools=[])["message"]


def test_models() -> None:
    def refusal_of_model(name: str) -> dict[str, Any]:
        return refusal(opening(requested_model={"model_id": name}))

    assert refusal_of_model("gpt-5.4-high") == BARE
    assert refusal_of_model("gpt-5.4-xhigh-fast") == BARE
    assert number(refusal_of_model("auto")) == ("not_found", "ERROR_BAD_MODEL_NAME")
    assert number(refusal_of_model("")) == ("not_found", "ERROR_BAD_MODEL_NAME")
    assert refusal(opening(requested_model=None, model_details={"model_id": "composer-2"})) == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"x_cursor_client_type": ""},
        {"x_cursor_client_type": "toolwire"},
        {"x_cursor_client_version": ""},
        {"x_cursor_client_version": "sdk-1.0.31"},
    ],
)
def test_who_does_not_say_which_client_it_is_must_update(headers: dict[str, str]) -> None:
    error = refusal(opening(), **headers)
    assert number(error) == ("resource_exhausted", "ERROR_GPT_4_VISION_PREVIEW_RATE_LIMIT")
    assert error["details"][0]["debug"]["details"]["title"] == "Update Required"


@pytest.mark.parametrize(("version", "is_refused"), [("cli-2026.08.11-e8", False), ("cli-2026.01.09-23", True)])
def test_an_outdated_version_must_update(version: str, is_refused: bool) -> None:
    settings = Settings(minimum_version="cli-2026.08.01")
    client, _ = run_once(settings=settings, model=play(Say("ok")), x_cursor_client_version=version)
    assert bool(client.error) == is_refused


def test_the_protocol_version_must_be_there() -> None:
    assert refusal(opening(), connect_protocol_version="")["code"] == "invalid_argument"


def test_tools_that_differ_in_the_two_places_are_an_offence() -> None:
    _, journal = run_once(first=opening(tools=[]), tools=[tool()], model=play(Say("ok")), settings=QUICK)
    assert journal.offences == ["mcp_tools and the tools of the context differ"]


@pytest.mark.parametrize("missing", ["", "os_version", "shell", "time_zone", "workspace_paths"])
def test_a_strict_server_wants_the_context_with_the_first_message(missing: str) -> None:
    env: dict[str, Any] = {"os_version": "linux 6", "shell": "bash", "time_zone": "UTC", "workspace_paths": ["/w"]}
    settings = Settings(heartbeat=QUICK.heartbeat, needs_context=True)
    client, _ = run_once(first=opening(), settings=settings)
    assert client.error == {"code": "invalid_argument", "message": "Request context is required"}
    env.pop(missing, None)
    action = {"user_message_action": {"user_message": {"text": "hi"}, "request_context": {"env": env}}}
    client, _ = run_once(first=opening(action=action), settings=settings, model=play(Say("ok")))
    assert (missing in str(client.error)) if missing else (client.error == {})


HISTORY = [{"role": "system", "content": "dropped"}, {"role": "user", "content": "first"}]


class Watching:
    """Keeps what it sees."""

    def __init__(self) -> None:
        self.seen: Seen = Seen()

    def start(self, seen: Seen) -> Any:
        self.seen = seen
        yield Say("ok")


def seen(first: Any, prepare: Any = lambda client: None, **headers: str) -> Seen:
    model = Watching()
    client, _ = run_once(model=model, first=first, prepare=prepare, **headers)
    assert client.error == {}
    return model.seen


def test_the_prompt_is_the_history_without_its_system_message_and_then_the_users() -> None:
    blobs = blobs_of(HISTORY)
    action = {"user_message_action": {"user_message": {"text": "now"}, "prepend_user_messages": [{"text": "before"}]}}
    found = seen(opening(roots=blobs, action=action, tools=[tool()]), lambda c: c.blobs.update(blobs))
    texts = [message["content"] for message in found.messages]
    assert texts == ["first", [{"type": "text", "text": "before"}], [{"type": "text", "text": "now"}]]
    assert (found.user_text, found.is_resumed) == ("now", False)


def test_a_resumed_run_has_no_new_message() -> None:
    blobs = blobs_of(HISTORY)
    found = seen(opening(roots=blobs, action={"resume_action": {}}, tools=[tool()]), lambda c: c.blobs.update(blobs))
    assert (found.is_resumed, len(found.messages), found.user_text) == (True, 1, "")


def test_images_models_parameters_and_tools() -> None:
    picture: Any = {"selected_images": [{"data": b"png", "mime_type": "image/png"}]}
    message: Any = {"text": "look", "selected_context": picture}
    model: Any = {"model_id": "gpt-5.4", "max_mode": True, "parameters": [{"id": "effort", "value": "high"}]}
    first = opening(action={"user_message_action": {"user_message": message}}, requested_model=model, tools=[tool()])
    found = seen(first, x_cursor_agent_allowed_tools="mcp_tool_call")
    assert found.images == (("image/png", b"png"),)
    assert found.messages[0]["content"][1]["image"] == "data:image/png;base64,cG5n"
    assert (found.model, found.max_mode, found.parameters) == ("gpt-5.4", True, {"effort": "high"})
    assert (found.tools[0].name, found.tools[0].schema) == ("look", {"type": "object"})
    assert found.allowed_tools == ("mcp_tool_call",)


def test_only_rules_that_hold_always_reach_the_model() -> None:
    def rule(content: str, source: int, **kind: Any) -> Any:
        return agent.CursorRule(content=content, source=source, type=agent.CursorRuleType(**kind))

    def prepare(client: Client) -> None:
        client.rules = [rule("yes", 2, **{"global": {}}), rule("team", 1, **{"global": {}}), rule("none", 2)]

    assert seen(opening(tools=[tool()]), prepare).rules == ("yes",)
