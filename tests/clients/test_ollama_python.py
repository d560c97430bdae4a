"""Ollama's own Python client against the gateway: text, streams, tools, thinking, schemas, lists and errors, on every kind of back end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.clients.gateway import KINDS, Gateway, scripted

ollama = pytest.importorskip("ollama")

pytestmark = pytest.mark.slow

UPSTREAMS = tuple(KINDS)
CALL = {"id": "call_1", "name": "get_weather", "arguments": '{"location": "Zürich"}'}
ASKS = {"text": "Let me look.", "calls": [CALL], "usage": {"input": 40, "output": 7}}
LOOP = scripted(ASKS, {"text": "It is {{result:0}}.", "usage": {"input": 50, "output": 9}})
each_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)


def get_weather(location: str) -> str:
    """The weather at a place.

    Args:
        location: The place.
    """
    return f"18 C in {location}"


class Report(BaseModel):
    city: str
    degrees: int


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Any]:
    with ollama.Client(host=gateway.address, headers={"authorization": f"Bearer {gateway.key}"}, timeout=20) as opened:
        yield opened


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@each_upstream
def test_chat_with_a_tool(gateway: Gateway, client: Any, upstream: str) -> None:
    model = gateway.model(upstream)
    messages: list[Any] = [user(LOOP)]
    first = client.chat(model, messages, tools=[get_weather])
    (call,) = first.message.tool_calls
    assert (call.function.name, dict(call.function.arguments)) == ("get_weather", {"location": "Zürich"})
    assert (first.done, first.done_reason, first.model) == (True, "stop", model)
    assert (first.prompt_eval_count, first.eval_count) == (40, 7)
    messages += [first.message, {"role": "tool", "content": get_weather(**call.function.arguments)}]
    last = client.chat(model, messages, tools=[get_weather])
    assert last.message.content == "It is 18 C in Zürich."


@each_upstream
def test_chat_with_a_tool_streaming(gateway: Gateway, client: Any, upstream: str) -> None:
    model = gateway.model(upstream)
    messages: list[Any] = [user(LOOP)]
    chunks = list(client.chat(model, messages, tools=[get_weather], stream=True))
    (call,) = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
    said = "".join(chunk.message.content or "" for chunk in chunks)
    assert said == "Let me look."
    assert [chunk.done for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    messages += [{"role": "assistant", "content": said, "tool_calls": [call]},
                 {"role": "tool", "tool_name": call.function.name, "content": "18 C"}]  # fmt: skip
    told = client.chat(model, messages, tools=[get_weather], stream=True)
    assert "".join(chunk.message.content or "" for chunk in told) == "It is 18 C."


def test_several_calls_at_once_keep_their_order(gateway: Gateway, client: Any) -> None:
    calls = [{"name": "get_weather", "arguments": f'{{"location": "{city}"}}'} for city in ("a", "b", "c")]
    prompt = scripted({"calls": calls}, {"text": "{{result:0}}, {{result:1}}, {{result:2}}"})
    messages: list[Any] = [user(prompt)]
    first = client.chat(gateway.model("messages"), messages, tools=[get_weather])
    results = [{"role": "tool", "content": get_weather(**one.function.arguments)} for one in first.message.tool_calls]
    last = client.chat(gateway.model("messages"), [*messages, first.message, *results], tools=[get_weather])
    assert last.message.content == "18 C in a, 18 C in b, 18 C in c"


@each_upstream
def test_generate(gateway: Gateway, client: Any, upstream: str) -> None:
    prompt = scripted({"text": "It is fine."})
    whole = client.generate(gateway.model(upstream), prompt, system="be brief", keep_alive="1m")
    assert (whole.response, whole.done) == ("It is fine.", True)
    pieces = client.generate(gateway.model(upstream), prompt, stream=True)
    assert "".join(piece.response for piece in pieces) == "It is fine."


def test_thinking(gateway: Gateway, client: Any) -> None:
    answer = client.chat(gateway.model("messages"), [user(scripted({"reasoning": "hm", "text": "yes"}))], think=True)
    assert (answer.message.thinking, answer.message.content) == ("hm", "yes")


def test_structured_output(gateway: Gateway, client: Any) -> None:
    prompt = scripted({"text": '{"city": "Zürich", "degrees": 18}'})
    answer = client.chat(gateway.model("chat"), [user(prompt)], format=Report.model_json_schema())
    assert Report.model_validate_json(answer.message.content) == Report(city="Zürich", degrees=18)


def test_lists(gateway: Gateway, client: Any) -> None:
    model = gateway.model("chat")
    assert model in [listed.model for listed in client.list().models]
    assert "tools" in client.show(model).capabilities
    assert client.ps().models == []
    assert client.pull(model).status == "success"
    assert client.generate(model).done_reason == "load"


def test_errors(gateway: Gateway, client: Any) -> None:
    limited = scripted({"error": {"status": 429, "message": "Slow down."}})
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(gateway.model("chat"), [user(limited)])
    assert caught.value.status_code == 429
    assert "Slow down." in caught.value.error
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat("nowhere/none", [user("hi")])
    assert caught.value.status_code == 404
    breaks = scripted({"text": "one two three", "chunk": 4, "error": {"status": 529, "message": "Broke.", "after": 2}})
    seen = []
    with pytest.raises(ollama.ResponseError) as caught:
        seen += list(client.chat(gateway.model("chat"), [user(breaks)], stream=True))
    assert "Broke." in caught.value.error
    with (
        pytest.raises(ollama.ResponseError) as caught,
        ollama.Client(host=gateway.address, headers={"authorization": "Bearer wrong"}) as stranger,
    ):
        stranger.list()
    assert caught.value.status_code == 401


def test_the_asynchronous_client(gateway: Gateway) -> None:
    async def talk() -> str:
        headers = {"authorization": f"Bearer {gateway.key}"}
        async with ollama.AsyncClient(host=gateway.address, headers=headers, timeout=20) as client:
            stream = await client.chat(gateway.model("responses"), [user(scripted({"text": "hello"}))], stream=True)
            return "".join([chunk.message.content or "" async for chunk in stream])

    assert asyncio.run(talk()) == "hello"
