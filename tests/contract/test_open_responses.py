"""The checks of the Open Responses compliance suite (2026-04-24), by HTTP and by WebSocket, on a back end that speaks only Chat Completions.

The suite is no package that could be installed, so this is its table of requests and assertions. The types of the official SDK replace its
schemas; it accepts other members, but no other type of event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.compacted_response import CompactedResponse
from pydantic import TypeAdapter

from tests.programs.long_task import upstream
from tests.server.harness import Answer, Gateway, ask, events_in, gateway, server_config
from tests.server.socket.client import SocketClient
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.events import Event, Finished, FoldedAnswer, PartEnded, Started, unfold
from toolwire.ids import new_id
from toolwire.types import Choice, Part, Request, Text, ToolCall, Usage

MODEL = "some-model"
EVENTS = {
    *(f"response.{name}" for name in ("created", "queued", "in_progress", "completed", "failed", "incomplete")),
    *(f"response.{name}" for name in ("output_item.added", "output_item.done", "content_part.added")),
    *(f"response.{name}" for name in ("content_part.done", "output_text.delta", "output_text.done")),
    *(f"response.{name}" for name in ("refusal.delta", "refusal.done", "output_text.annotation.added")),
    *(f"response.function_call_arguments.{name}" for name in ("delta", "done")),
    *(f"response.reasoning.{name}" for name in ("delta", "done")),
    *(f"response.reasoning_summary_part.{name}" for name in ("added", "done")),
    *(f"response.reasoning_summary_text.{name}" for name in ("delta", "done")),
    "error",
}
REQUIRED = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
]
PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOL = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


class PlainModel:
    """Calls the tool that it is offered, else says something."""

    def answer(self, request: Request) -> list[Event]:
        part: Part = Text(text="Hello from here.")
        if request.tools:
            part = ToolCall(id=new_id("call_"), name=request.tools[0].name, raw='{"location":"San Francisco, CA"}')
        reason: Any = "tool_calls" if request.tools else "stop"
        finished = Finished(choices=(Choice(reason=reason),), usage=Usage(input=9, output=3))
        started = Started(id=new_id("chatcmpl-"), model=request.model)
        return unfold(FoldedAnswer(started=started, parts=(PartEnded(index=0, part=part),), finished=finished))


@pytest.fixture(scope="module")
def chat_only() -> Iterator[Gateway]:
    with upstream("openai-chat", PlainModel()) as port:
        backend = BackendConfig(name="chat", kind="openai-chat", base_url=f"http://127.0.0.1:{port}/v1", retries=0)
        with gateway(with_backends(Config(server=server_config()), (backend,))) as running:
            yield running


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **more}


def post(running: Gateway, path: str = "/v1/responses", **body: Any) -> Answer:
    return ask(running.port, "POST", path, body)


def check_response(value: Any) -> None:
    assert set(REQUIRED) <= set(value)
    Response.model_validate(value)
    assert value["status"] == "completed"
    assert value["output"]


def check_turn(events: list[Any]) -> dict[str, Any]:
    """The response of a turn whose events the suite accepts."""
    for event in events:
        assert event["type"] in EVENTS
        TypeAdapter(ResponseStreamEvent).validate_python(event)
    assert events[-1]["type"] == "response.completed"
    check_response(events[-1]["response"])
    response: dict[str, Any] = events[-1]["response"]
    return response


HISTORIES = {
    "basic-response": [message("user", "Say hello in exactly 3 words.")],
    "assistant-phase": [
        message("assistant", "I should answer with the saved number.", phase="commentary"),
        message("assistant", "The number is four.", phase="final_answer"),
        message("user", "Repeat only the number."),
    ],
    "system-prompt": [message("system", "You are a pirate."), message("user", "Say hello.")],
    "image-input": [
        message("user", [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PNG}])
    ],
    "multi-turn": [
        message("user", "My name is Alice."),
        message("assistant", "Hello Alice!"),
        message("user", "What is my name?"),
    ],
}


@pytest.mark.parametrize("case", list(HISTORIES))
def test_a_response(chat_only: Gateway, case: str) -> None:
    answer = post(chat_only, model=MODEL, input=HISTORIES[case], stream=False)
    assert answer.status == 200
    check_response(answer.json)


def test_response_output_phase_schema() -> None:
    """A fixture of the suite for its own schema; here: a response with phases is one for the SDK."""
    content = [{"type": "output_text", "text": "x", "annotations": []}]
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": content}
    value: dict[str, Any] = dict.fromkeys(REQUIRED) | {"output": [{**item, "phase": "commentary"}]}
    value |= {"id": "resp_1", "object": "response", "created_at": 1, "model": MODEL, "status": "completed"}
    value |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    Response.model_validate(value)


def test_streaming_response(chat_only: Gateway) -> None:
    answer = post(chat_only, model=MODEL, input=[message("user", "Count from 1 to 5.")], stream=True)
    check_turn([data for _, data in events_in(answer.body)])


def test_tool_calling(chat_only: Gateway) -> None:
    answer = post(chat_only, model=MODEL, input=[message("user", "The weather?")], tools=[TOOL], stream=False)
    check_response(answer.json)
    assert "function_call" in [item["type"] for item in answer.json["output"]]


def compacted(running: Gateway) -> Answer:
    said = [message("user", "We launch on Tuesday."), message("assistant", "Understood.")]
    return post(running, "/v1/responses/compact", model=MODEL, prompt_cache_key="compact-test", input=said)


def test_compact_response(chat_only: Gateway) -> None:
    answer = compacted(chat_only)
    assert answer.status == 200
    asked, item = answer.json["output"]
    CompactedResponse.model_validate(
        {**answer.json, "output": [item]}
    )  # the SDK has no type for messages of the user here
    assert item["type"] == "compaction"
    assert set(asked) >= {"id", "type", "role", "status", "content"}


def test_compact_missing_model(chat_only: Gateway) -> None:
    assert post(chat_only, "/v1/responses/compact", input=[message("user", "Compact this.")]).status in (400, 422)


def test_websocket_response(chat_only: Gateway) -> None:
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, input=[message("user", "Count from 1 to 3.")])
        check_turn(client.turn())


def test_websocket_sequential_responses(chat_only: Gateway) -> None:
    with SocketClient(chat_only.port) as client:
        for text in ("Reply with exactly: first", "Reply with exactly: second"):
            client.create(MODEL, store=False, input=text)
            check_turn(client.turn())


def test_websocket_continuation(chat_only: Gateway) -> None:
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, input="Remember the code word: cobalt.")
        first = check_turn(client.turn())
        client.create(MODEL, store=False, previous_response_id=first["id"], input=[message("user", "Repeat it.")])
        assert check_turn(client.turn())["previous_response_id"] == first["id"]


def test_websocket_reconnect_store_false_recovery(chat_only: Gateway) -> None:
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, input="Remember the code word: copper.")
        first = check_turn(client.turn())
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, previous_response_id=first["id"], input="Repeat it.")
        assert client.turn()[-1]["error"]["code"] == "previous_response_not_found"
        client.create(MODEL, store=False, input="Start again.")
        check_turn(client.turn())


def test_websocket_previous_response_not_found(chat_only: Gateway) -> None:
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, previous_response_id="resp_openresponses_missing_1", input="This must fail.")
        error = client.turn()[-1]
    assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")


def test_websocket_failed_continuation_evicts_cache(chat_only: Gateway) -> None:
    wrong = {"type": "function_call_output", "call_id": "call_openresponses_missing", "output": "no such call"}
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, input="Remember the code word: ember.")
        parent = check_turn(client.turn())["id"]
        client.create(MODEL, store=False, previous_response_id=parent, input=[wrong])
        assert 400 <= client.turn()[-1]["status"] < 600
        client.create(MODEL, store=False, previous_response_id=parent, input="Repeat it.")
        assert client.turn()[-1]["error"]["code"] == "previous_response_not_found"


def test_websocket_compact_new_chain(chat_only: Gateway) -> None:
    window = compacted(chat_only).json["output"]
    with SocketClient(chat_only.port) as client:
        client.create(MODEL, store=False, tools=[], input=[*window, message("user", "When do we launch?")])
        check_turn(client.turn())
