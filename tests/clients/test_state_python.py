"""The vendors' own Python clients where they lean on what the server remembers, through every kind of back end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.clients.gateway import KINDS, Gateway, scripted

pytestmark = pytest.mark.slow

UPSTREAMS = tuple(KINDS)
VERBATIM = ("auto", "never")
ARGUMENTS = '{"location": "Zürich 中😀"}'
CALLS = {"text": "Let me look.", "calls": [{"name": "weather", "arguments": ARGUMENTS}]}
TOOL: Any = {"type": "function", "name": "weather", "parameters": {"type": "object"}, "strict": False}


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=gateway.openai_url, api_key=gateway.key, max_retries=0, timeout=20) as opened:
        yield opened


@pytest.mark.parametrize("verbatim", VERBATIM)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_with_a_previous_one(gateway: Gateway, client: OpenAI, upstream: str, verbatim: str) -> None:
    model = gateway.model(upstream, verbatim)
    first = client.responses.create(model=model, input=scripted(CALLS, {"text": "It is {{result:0}}."}), tools=[TOOL])
    call = next(item for item in first.output if item.type == "function_call")
    assert call.arguments == ARGUMENTS or upstream in ("messages", "gemini")  # there they are an object
    result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "18 C"}
    second = client.responses.create(model=model, input=[result], previous_response_id=first.id, tools=[TOOL])
    assert second.output_text == "It is 18 C."
    with client.responses.stream(model=model, input="again", previous_response_id=second.id) as stream:
        third = stream.get_final_response()
    assert third.previous_response_id == second.id
    assert client.responses.retrieve(third.id).output_text == third.output_text
    listed = client.responses.input_items.list(second.id).data
    assert [item.type for item in listed] == ["function_call_output"]
    client.responses.delete(third.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(third.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=model, input="x", previous_response_id=third.id)
    assert caught.value.code == "previous_response_not_found"


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_conversations(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    model = gateway.model(upstream)
    conversation = client.conversations.create(metadata={"a": "b"}, items=[{"role": "user", "content": "I am Ada."}])
    first = client.responses.create(model=model, conversation=conversation.id, input=scripted({"text": "Hello."}))
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    items: list[Any] = list(client.conversations.items.list(conversation.id, order="asc", limit=1))
    assert [item.role for item in items] == ["user", "user", "assistant"]
    assert client.conversations.items.retrieve(items[0].id, conversation_id=conversation.id) == items[0]
    assert client.conversations.update(conversation.id, metadata={"c": "d"}).metadata == {"c": "d"}
    client.conversations.items.delete(items[0].id, conversation_id=conversation.id)
    added = client.conversations.items.create(conversation.id, items=[{"role": "user", "content": "more"}])
    assert added.data[0].type == "message"
    assert client.conversations.delete(conversation.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.conversations.retrieve(conversation.id)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_background(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    model = gateway.model(upstream)
    answer = client.responses.create(model=model, input=scripted({"text": "done", "delay": 0.2}), background=True)
    assert answer.status == "queued"
    end = time.monotonic() + 10
    while answer.status in ("queued", "in_progress") and time.monotonic() < end:
        time.sleep(0.05)
        answer = client.responses.retrieve(answer.id)
    assert (answer.status, answer.output_text) == ("completed", "done")
    endless = client.responses.create(model=model, input=scripted({"text": "x", "delay": 60}), background=True)
    assert client.responses.cancel(endless.id).status == "cancelled"


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_background_stream_is_taken_up_again(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    words = "one two three four five six"
    prompt = scripted({"text": words, "chunk": 4, "pace": 0.02})
    seen, text, name = -1, "", ""
    with client.responses.create(model=gateway.model(upstream), input=prompt, background=True, stream=True) as stream:
        for event in stream:
            seen = event.sequence_number
            if event.type == "response.created":
                name = event.response.id
            if event.type == "response.output_text.delta":
                text += event.delta
                break
    with client.responses.retrieve(name, stream=True, starting_after=seen) as rest:
        for event in rest:
            if event.type == "response.output_text.delta":
                text += event.delta
    assert text == words
    assert event.type == "response.completed"


@pytest.mark.parametrize("verbatim", VERBATIM)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_threads(gateway: Gateway, upstream: str, stream: bool, verbatim: str) -> None:
    """The client raises where a thread is refused or not found, instead of sending its history again."""
    bodies: list[bytes] = []
    transport = anthropic.DefaultHttpxClient(event_hooks={"request": [lambda request: bodies.append(request.content)]})
    with Anthropic(base_url=gateway.address, api_key=gateway.key, max_retries=0, http_client=transport) as client:
        thread: Any = client.beta.messages.thread(model=gateway.model(upstream, verbatim), max_tokens=99)
        prompt = scripted({"text": "one"}, {"text": "two"}, {"text": "three"})
        texts = []
        for word in (prompt, "b", "c"):
            message: Any = {"role": "user", "content": word}
            if stream:
                with thread.stream(message) as turn:
                    answer = turn.get_final_message()
            else:
                answer = thread.send(message)
            texts.append(answer.content[0].text)
    assert texts == ["one", "two", "three"]
    assert [b'"continue"' in body for body in bodies] == [False, True, True]
    assert all(prompt.encode() not in body for body in bodies[1:])
