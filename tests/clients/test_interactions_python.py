"""Google's own Python client against the gateway's Interactions API, on every kind of back end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clients.gateway import KINDS, Gateway, scripted

genai = pytest.importorskip("google.genai")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:google"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:aiohttp"),
    pytest.mark.filterwarnings("ignore::UserWarning:google"),
]

UPSTREAMS = tuple(KINDS)
CALL = {"id": "call_1", "name": "get_weather", "arguments": '{"location": "Zürich"}'}
ASKS = {"text": "Let me look.", "calls": [CALL], "usage": {"input": 40, "output": 7}}
LOOP = scripted(ASKS, {"text": "It is {{result:0}}.", "usage": {"input": 50, "output": 9}})
PARAMETERS = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather.", "parameters": PARAMETERS}]
each_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Any]:
    retries = genai.types.HttpRetryOptions(attempts=1)
    options = genai.types.HttpOptions(base_url=gateway.address, timeout=20_000, retry_options=retries)
    with genai.Client(api_key=gateway.key, http_options=options) as opened:
        yield opened


def call_in(interaction: Any) -> Any:
    (call,) = [step for step in interaction.steps if step.type == "function_call"]
    return call


def result(call: Any, text: str) -> dict[str, Any]:
    return {"type": "function_result", "call_id": call.id, "name": call.name, "result": text}


@each_upstream
def test_a_tool_and_a_stored_interaction(gateway: Gateway, client: Any, upstream: str) -> None:
    model = gateway.model(upstream)
    first = client.interactions.create(model=model, input=LOOP, tools=TOOLS, system_instruction="be brief")
    call = call_in(first)
    assert (call.name, call.arguments, first.status) == ("get_weather", {"location": "Zürich"}, "requires_action")
    assert first.output_text == "Let me look."
    assert (first.usage.total_input_tokens, first.usage.total_output_tokens) == (40, 7)
    last = client.interactions.create(
        model=model, previous_interaction_id=first.id, input=[result(call, "18 C")], tools=TOOLS
    )
    assert (last.status, last.output_text, last.previous_interaction_id) == ("completed", "It is 18 C.", first.id)


@each_upstream
def test_a_tool_without_storage_streaming(gateway: Gateway, client: Any, upstream: str) -> None:
    model = gateway.model(upstream)
    asked = [{"type": "user_input", "content": [{"type": "text", "text": LOOP}]}]
    events = list(client.interactions.create(model=model, input=asked, tools=TOOLS, store=False, stream=True))
    kinds = [event.event_type for event in events]
    assert (kinds[0], kinds[-1]) == ("interaction.created", "interaction.completed")
    texts = [event.delta.text for event in events if event.event_type == "step.delta" and event.delta.type == "text"]
    assert "".join(texts) == "Let me look."
    raw = [
        one.delta.arguments for one in events if one.event_type == "step.delta" and one.delta.type == "arguments_delta"
    ]
    assert json.loads("".join(raw)) == {"location": "Zürich"}
    whole = events[-1].interaction
    call = call_in(whole)
    steps = [*asked, *(step.model_dump(exclude_none=True) for step in whole.steps), result(call, "18 C")]
    last = client.interactions.create(model=model, input=steps, tools=TOOLS, store=False)
    assert last.output_text == "It is 18 C."


def test_stored_interactions_are_read_followed_and_deleted(gateway: Gateway, client: Any) -> None:
    made = client.interactions.create(model=gateway.model("chat"), input=scripted({"text": "hello there"}))
    again = client.interactions.get(made.id, include_input=True)
    assert (again.status, again.output_text, again.id) == ("completed", "hello there", made.id)
    assert again.input
    events = list(client.interactions.get(made.id, stream=True))
    assert [event.event_type for event in events] == [
        "interaction.created", "step.start", "step.delta", "step.stop", "interaction.completed",
    ]  # fmt: skip
    client.interactions.delete(made.id)
    with pytest.raises(Exception, match="no stored interaction") as caught:
        client.interactions.get(made.id)
    assert caught.value.status_code == 404


def test_the_background(gateway: Gateway, client: Any) -> None:
    made = client.interactions.create(model=gateway.model("chat"), input=scripted({"text": "hello"}), background=True)
    assert made.status in ("queued", "in_progress", "completed")
    deadline = time.monotonic() + 10
    while (found := client.interactions.get(made.id)).status in ("queued", "in_progress"):
        assert time.monotonic() < deadline
    assert (found.status, found.output_text) == ("completed", "hello")
    follow = client.interactions.create(
        model=gateway.model("messages"), previous_interaction_id=made.id, input=scripted({"text": "and on"})
    )
    assert follow.output_text == "and on"


def test_an_interaction_is_cancelled(gateway: Gateway, client: Any) -> None:
    slow = scripted({"text": "x" * 200, "chunk": 1, "pace": 0.5})
    made = client.interactions.create(model=gateway.model("chat"), input=slow, background=True)
    assert client.interactions.cancel(made.id).status == "cancelled"
    assert client.interactions.get(made.id).status == "cancelled"


def test_thoughts_and_schemas(gateway: Gateway, client: Any) -> None:
    prompt = scripted({"reasoning": "hm", "text": '{"degrees": 18}'})
    schema = {"type": "object", "properties": {"degrees": {"type": "integer"}}}
    answer = client.interactions.create(
        model=gateway.model("messages"),
        input=prompt,
        response_format={"type": "text", "mime_type": "application/json", "schema": schema},
        generation_config={"thinking_level": "low", "max_output_tokens": 5000},
    )
    assert json.loads(answer.output_text) == {"degrees": 18}
    thoughts = [step.summary[0].text for step in answer.steps if step.type == "thought"]
    assert thoughts == ["hm"]


def test_errors(gateway: Gateway, client: Any) -> None:
    limited = scripted({"error": {"status": 429, "message": "Slow down."}})
    with pytest.raises(Exception, match=r"Slow down\.") as caught:
        client.interactions.create(model=gateway.model("chat"), input=limited)
    assert caught.value.status_code == 429
    with pytest.raises(Exception, match="no stored interaction") as caught:
        client.interactions.create(model=gateway.model("chat"), input="hi", previous_interaction_id="int_unknown")
    assert caught.value.status_code == 404
    breaks = scripted({"text": "one two three", "chunk": 4, "error": {"status": 529, "message": "Broke.", "after": 2}})
    events = list(client.interactions.create(model=gateway.model("chat"), input=breaks, stream=True))
    assert events[-1].event_type == "error"
    assert "Broke." in events[-1].error.message
