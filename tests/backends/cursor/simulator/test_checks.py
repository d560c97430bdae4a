from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import blobs_of, opening, tool
from tests.backends.cursor.simulator.playing import QUICK, TRANSPORTS, played
from toolwire.backends.cursor.simulator import Say, Settings, play

BARE = {"code": "resource_exhausted", "message": "Error"}


def call(call_id: str, **more: Any) -> dict[str, Any]:
    part = {"type": "tool-call", "toolCallId": call_id, "toolName": "look", "args": {}, **more}
    return {"role": "assistant", "content": [part]}


def result(call_id: str) -> dict[str, Any]:
    part = {"type": "tool-result", "toolCallId": call_id, "toolName": "look", "result": "r"}
    return {"role": "tool", "id": call_id, "content": [part]}


def refusal(first: Any, blobs: dict[bytes, bytes] | None = None, tools: Any = (), **headers: str) -> dict[str, Any]:
    client, journal = played(
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
    client, _ = played(transport, first=first)
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
    def asked(name: str) -> dict[str, Any]:
        return refusal(opening(requested_model={"model_id": name}))

    assert asked("gpt-5.4-high") == BARE
    assert asked("gpt-5.4-xhigh-fast") == BARE
    assert number(asked("auto")) == ("not_found", "ERROR_BAD_MODEL_NAME")
    assert number(asked("")) == ("not_found", "ERROR_BAD_MODEL_NAME")
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
    client, _ = played(settings=settings, model=play(Say("ok")), x_cursor_client_version=version)
    assert bool(client.error) == is_refused


def test_the_protocol_version_must_be_there() -> None:
    assert refusal(opening(), connect_protocol_version="")["code"] == "invalid_argument"


def test_tools_that_differ_in_the_two_places_are_an_offence() -> None:
    _, journal = played(first=opening(tools=[]), tools=[tool()], model=play(Say("ok")), settings=QUICK)
    assert journal.offences == ["mcp_tools and the tools of the context differ"]


@pytest.mark.parametrize("missing", ["", "os_version", "shell", "time_zone", "workspace_paths"])
def test_a_strict_server_wants_the_context_with_the_first_message(missing: str) -> None:
    env: dict[str, Any] = {"os_version": "linux 6", "shell": "bash", "time_zone": "UTC", "workspace_paths": ["/w"]}
    settings = Settings(heartbeat=QUICK.heartbeat, needs_context=True)
    client, _ = played(first=opening(), settings=settings)
    assert client.error == {"code": "invalid_argument", "message": "Request context is required"}
    env.pop(missing, None)
    action = {"user_message_action": {"user_message": {"text": "hi"}, "request_context": {"env": env}}}
    client, _ = played(first=opening(action=action), settings=settings, model=play(Say("ok")))
    assert (missing in str(client.error)) if missing else (client.error == {})
