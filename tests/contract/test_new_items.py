"""Newer items and members: programs that call tools, settings in mid-conversation, phases. Each is passed or translated, or reported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.request_members import flat_tool, messages_tool
from tests.dialects.codec_harness import body_in, make_request, out
from tests.pipeline.jobs import prepared
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS
from toolwire.events import Noted, PartEnded
from toolwire.types import Loss, Message, Text

KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
Body = dict[str, Any]


def sent(client: str, body: Body, upstream: str, **fields: Any) -> tuple[Body, list[str]]:
    """What a back end gets of a request, and the losses."""
    request = DIALECTS[client].decode_request(json.dumps(body).encode(), {})
    config = BackendConfig(name="b", kind=KINDS[upstream], base_url="https://host.example", **fields)  # type: ignore[arg-type] # one of them
    backend = HttpBackend(config, Transport())
    job = prepared(request, backend)
    encoded = DIALECTS[upstream].encode_request(job.request, backend.profile)
    return json.loads(encoded.body), [loss.feature for loss in (*job.losses, *encoded.losses)]


def responses(*items: Body, **members: Any) -> Body:
    return {"model": "m", "store": False, "input": [{"role": "user", "content": "hi"}, *items], **members}


def messages(**members: Any) -> Body:
    return {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "hi"}], **members}


HIDDEN: dict[str, Body] = {
    "responses": responses(
        tools=[
            flat_tool("open_file", allowed_callers=["direct", "programmatic"]),
            flat_tool("delete_file", allowed_callers=["programmatic"]),
            {"type": "custom", "name": "delete_all", "allowed_callers": ["programmatic"]},
            {"type": "apply_patch", "allowed_callers": ["programmatic"]},
            {"type": "programmatic_tool_calling"},
        ]
    ),
    "messages": messages(
        tools=[
            messages_tool("open_file", allowed_callers=["direct", "code_execution_20260521"]),
            messages_tool("delete_file", allowed_callers=["code_execution_20260521"]),
            {"type": "bash_20250124", "name": "bash", "allowed_callers": ["code_execution_20260521"]},
            {"type": "code_execution_20260521", "name": "code_execution"},
        ]
    ),
}


@pytest.mark.parametrize("client", HIDDEN)
@pytest.mark.parametrize("upstream", KINDS)
def test_a_tool_that_only_programs_may_call_is_not_offered_as_a_direct_call(client: str, upstream: str) -> None:
    body, losses = sent(client, HIDDEN[client], upstream)
    if upstream == client:
        assert (body["tools"], losses) == (HIDDEN[client]["tools"], [])
        return
    text = json.dumps(body["tools"])
    assert "open_file" in text
    assert not any(name in text for name in ("delete", "apply_patch", "bash", "code_execution", "programmatic"))
    assert losses.count("tool.allowed_callers") >= 2
    assert "tool.hosted" in losses


@pytest.mark.parametrize("client", HIDDEN)
def test_a_server_of_the_same_dialect_without_programs_is_not_offered_it_either(client: str) -> None:
    body, losses = sent(client, HIDDEN[client], client, tool_kinds="functions")
    assert [tool["name"] for tool in body["tools"]] == ["open_file"]
    assert "tool.allowed_callers" in losses


def test_a_choice_of_a_tool_that_is_not_offered_is_reported() -> None:
    named = {**HIDDEN["responses"], "tool_choice": {"type": "function", "name": "delete_file"}}
    body, losses = sent("responses", named, "chat")
    assert "tool_choice" not in body
    assert "tool_choice" in losses


PROGRAM: list[Body] = [
    {"type": "program", "id": "prog_1", "call_id": "p1", "code": "mark_code()", "fingerprint": "mark_print"},
    {
        "type": "function_call",
        "call_id": "c1",
        "name": "open_file",
        "arguments": "{}",
        "caller": {"type": "program", "caller_id": "p1"},
    },
    {
        "type": "function_call_output",
        "call_id": "c1",
        "output": "mark_file",
        "caller": {"type": "program", "caller_id": "p1"},
    },
    {"type": "program_output", "id": "prog_2", "call_id": "p1", "result": "mark_result", "status": "completed"},
]


def test_programs_return_to_their_provider_unchanged() -> None:
    given = responses(*PROGRAM, {"role": "user", "content": "go"}, tools=HIDDEN["responses"]["tools"])
    body, losses = sent("responses", given, "responses")
    assert (body["input"], losses) == (given["input"], [])


@pytest.mark.parametrize("upstream", ["chat", "messages", "gemini"])
def test_other_models_read_programs_as_text_and_their_calls_as_calls(upstream: str) -> None:
    body, losses = sent("responses", responses(*PROGRAM, {"role": "user", "content": "go"}), upstream)
    text = json.dumps(body)
    assert all(mark in text for mark in ("mark_file", "mark_result"))
    assert ("mark_code()" in text) == (upstream != "chat")  # its assistant messages have only text and calls
    assert {"part.program", "part.program_output", "call.caller", "result.caller"} <= set(losses)


def test_a_program_whose_output_is_missing_is_reported() -> None:
    _, losses = sent("responses", responses(PROGRAM[0], {"role": "user", "content": "go"}), "responses")
    assert losses == ["history.hosted"]


UPDATES: list[Body] = [
    {"type": "configuration_update", "reasoning": {"effort": "low"}},
    {"role": "user", "content": "more"},
    {
        "type": "configuration_update",
        "reasoning": {"effort": "high"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object", "title": "mark_schema"}}},
    },
]


@pytest.mark.parametrize("upstream", ["chat", "messages", "gemini"])
def test_the_latest_configuration_applies(upstream: str) -> None:
    given = responses(*UPDATES, {"role": "user", "content": "go"}, reasoning={"effort": "medium"})
    body, losses = sent("responses", {**given, "model": "claude-opus-5"}, upstream)
    text = json.dumps(body)
    assert '"high"' in text or '"thinkingBudget"' in text
    assert "mark_schema" in text
    assert "configuration_update" not in text
    assert [loss for loss in losses if not loss.startswith("thinking")] == []


def test_its_own_provider_gets_configurations_in_place() -> None:
    given = responses(*UPDATES, {"role": "user", "content": "go"})
    assert sent("responses", given, "responses") == (given, [])
    body, _ = sent("responses", given, "responses", tool_kinds="functions")
    assert (body["reasoning"], len(body["input"])) == ({"effort": "high"}, 3)


PHASED: Body = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "phase": phase,
            "content": [{"type": "output_text", "text": phase, "annotations": [], "logprobs": []}],
        }
        for number, phase in enumerate(("commentary", "final_answer"))
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}


def test_phases_of_an_answer_survive_decoding_and_encoding() -> None:
    events = body_in("responses", json.dumps(PHASED).encode(), make_request("responses"))
    texts = [event.part for event in events if isinstance(event, PartEnded)]
    assert all(isinstance(part, Text) and part.extra["responses"]["phase"] == part.text for part in texts)
    added = [
        json.loads(line[6:])["item"]
        for line in out("responses", events).decode().split("\n")
        if line.startswith("data: ") and '"response.output_item.' in line
    ]
    assert [item["phase"] for item in added] == ["commentary", "commentary", "final_answer", "final_answer"]


def test_a_client_of_another_dialect_learns_that_a_phase_is_lost() -> None:
    events = body_in("responses", json.dumps(PHASED).encode(), make_request("chat"))
    losses = [event.note.feature for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
    assert losses == ["answer.phase"]


def test_phases_of_the_history_reach_their_provider_after_a_correction() -> None:
    """A correction sends the model's own answer back, message by message."""
    events = body_in("responses", json.dumps(PHASED).encode(), make_request("responses"))
    request = make_request("responses", input=[{"role": "user", "content": "hi"}])
    parts = tuple(event.part for event in events if isinstance(event, PartEnded))
    changed = replace(request, messages=(*request.messages, Message(role="assistant", parts=parts[:1])), wire=b"")
    profile = HttpBackend(BackendConfig(name="b", kind="openai-responses", base_url="https://h"), Transport()).profile
    (item,) = json.loads(DIALECTS["responses"].encode_request(changed, profile).body)["input"][-1:]
    assert item["phase"] == "commentary"
    assert "phase" not in item["content"][0]
