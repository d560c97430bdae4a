"""Anthropic's own Python client against the gateway: Messages, its helpers and its tool runner, through every kind of back end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from pydantic import BaseModel

from tests.clients.gateway import KINDS, Gateway, scripted

pytestmark = pytest.mark.slow

UPSTREAMS = tuple(KINDS)
ASKS_PARIS = {
    "text": "Let me look.",
    "calls": [{"id": "call_1", "name": "get_weather", "arguments": '{"location": "Paris"}'}],
}
TELLS = {"text": "It is {{result:0}}.", "usage": {"input": 50, "output": 9}}
WEATHER_LOOP = scripted(ASKS_PARIS, TELLS)
ANSWER = "It is 18 C and rain."
TOOL: Any = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}


class Report(BaseModel):
    city: str
    degrees: int


def weather(arguments: Any) -> str:
    assert arguments == {"location": "Paris"}
    return "18 C and rain"


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Anthropic]:
    with Anthropic(base_url=gateway.address, api_key=gateway.key, max_retries=0, timeout=20) as opened:
        yield opened


@asynccontextmanager
async def asynchronous(gateway: Gateway) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=gateway.address, api_key=gateway.key, max_retries=0, timeout=20) as opened:
        yield opened


class Talk:
    """A conversation: what to send next, and what came of the last answer."""

    def __init__(self, model: str, prompt: str) -> None:
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.request: dict[str, Any] = {
            "model": model,
            "max_tokens": 500,
            "tools": [TOOL],
            "messages": self.messages,
        }

    def take(self, message: Any) -> None:
        """An answer with a call: run it."""
        assert message.stop_reason == "tool_use"
        text, call = message.content
        assert text.text == "Let me look."
        assert (call.type, call.id, call.name) == ("tool_use", "call_1", "get_weather")
        result = {"type": "tool_result", "tool_use_id": call.id, "content": weather(call.input)}
        self.messages += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": [result]},
        ]


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_create(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    talk = Talk(gateway.model(upstream), WEATHER_LOOP)
    talk.take(client.messages.create(**talk.request))
    last = client.messages.create(**talk.request)
    assert [block.text for block in last.content] == [ANSWER]
    assert last.stop_reason == "end_turn"
    assert (last.usage.input_tokens, last.usage.output_tokens) == (50, 9)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_raw_stream(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    talk = Talk(gateway.model(upstream), WEATHER_LOOP)
    events = list(client.messages.create(stream=True, **talk.request))
    assert events[0].type == "message_start"
    assert events[-1].type == "message_stop"
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    assert "".join(delta.text for delta in deltas if delta.type == "text_delta") == "Let me look."
    arguments = "".join(delta.partial_json for delta in deltas if delta.type == "input_json_delta")
    assert arguments == ('{"location":"Paris"}' if upstream == "gemini" else '{"location": "Paris"}')


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_stream_helper(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    talk = Talk(gateway.model(upstream), WEATHER_LOOP)
    with client.messages.stream(**talk.request) as stream:
        kinds = {event.type for event in stream}
        talk.take(stream.get_final_message())
    assert {"text", "input_json", "content_block_stop", "message_stop"} <= kinds
    with client.messages.stream(**talk.request) as stream:
        texts = list(stream.text_stream)
        last = stream.get_final_message()
    assert "".join(texts) == ANSWER
    assert (last.usage.input_tokens, last.usage.output_tokens) == (50, 9)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_asynchronous(gateway: Gateway, upstream: str) -> None:
    async def main() -> None:
        talk = Talk(gateway.model(upstream), WEATHER_LOOP)
        async with asynchronous(gateway) as client:
            talk.take(await client.messages.create(**talk.request))
            async with client.messages.stream(**talk.request) as stream:
                texts = [text async for text in stream.text_stream]
            assert "".join(texts) == ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_parallel_calls(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    places = ["Paris", "Oslo", "Zürich"]
    calls = [{"name": "get_weather", "arguments": {"location": place}} for place in places]
    talk = Talk(gateway.model(upstream), scripted({"calls": calls, "chunk": 3}))
    with client.messages.stream(**talk.request) as stream:
        streamed = stream.get_final_message()
    for message in (streamed, client.messages.create(**talk.request)):
        assert [block.input["location"] for block in message.content if block.type == "tool_use"] == places
        assert len({block.id for block in message.content if block.type == "tool_use"}) == 3


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_parse(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    prompt = scripted({"text": '{"city": "Oslo", "degrees": -3}'})
    message = client.messages.parse(
        model=gateway.model(upstream),
        max_tokens=500,
        messages=[{"role": "user", "content": prompt}],
        output_format=Report,
    )
    assert message.parsed_output == Report(city="Oslo", degrees=-3)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_thinking_goes_around(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    thinks = {**ASKS_PARIS, "reasoning": "Where is Paris?", "signature": "c2lnbmVk"}
    talk = Talk(gateway.model(upstream), scripted(thinks, {"echo": True}))
    with client.messages.stream(**talk.request) as stream:
        first = stream.get_final_message()
    thought = first.content[0]
    assert thought.type == "thinking"
    assert thought.thinking == "Where is Paris?"
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "18 C"}
    talk.messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    last = client.messages.create(**talk.request)
    assert last.content[0].type == "text"
    assert ("c2lnbmVk" in last.content[0].text) == (upstream != "chat")  # chat has nothing that could carry it


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_count_tokens(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    counted = client.messages.count_tokens(
        model=gateway.model(upstream), tools=[TOOL], messages=[{"role": "user", "content": "How long is this?"}]
    )
    assert counted.input_tokens > 5


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_tool_runner(gateway: Gateway, upstream: str, stream: bool) -> None:
    """The runner asks for a thread on the server, and from then on sends only what is new."""
    statuses: list[int] = []
    places: list[str] = []

    @beta_tool
    def get_weather(location: str) -> str:
        """The weather at a place."""
        places.append(location)
        return "18 C and rain"

    def note(response: Any) -> None:
        statuses.append(response.status_code)

    transport = anthropic.DefaultHttpxClient(event_hooks={"response": [note]})
    with Anthropic(base_url=gateway.address, api_key=gateway.key, max_retries=0, http_client=transport) as client:
        runner: Any = client.beta.messages.tool_runner(
            model=gateway.model(upstream),
            max_tokens=500,
            tools=[get_weather],
            messages=[{"role": "user", "content": WEATHER_LOOP}],
            stream=stream,
        )
        messages = [turn.get_final_message() if stream else turn for turn in runner]
    assert statuses == [200, 200]
    assert places == ["Paris"]
    assert [message.stop_reason for message in messages] == ["tool_use", "end_turn"]
    assert messages[-1].content[0].text == ANSWER


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_asynchronous_tool_runner(gateway: Gateway, upstream: str, stream: bool) -> None:
    @beta_async_tool
    async def get_weather(location: str) -> str:
        """The weather at a place."""
        return weather({"location": location})

    async def main() -> None:
        async with asynchronous(gateway) as client:
            runner: Any = client.beta.messages.tool_runner(
                model=gateway.model(upstream),
                max_tokens=500,
                tools=[get_weather],
                messages=[{"role": "user", "content": WEATHER_LOOP}],
                stream=stream,
            )
            turns = [await turn.get_final_message() if stream else turn async for turn in runner]
            assert turns[-1].content[0].text == ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_lost_thread_has_the_error_that_runners_know(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    talk = Talk(gateway.model(upstream), "hello")
    request = talk.request | {"tools": []}
    with pytest.raises(anthropic.NotFoundError) as caught:
        client.messages.create(
            **request, extra_body={"thread": {"type": "continue", "previous_message_id": "msg_of_nobody"}}
        )
    body: Any = caught.value.body
    assert body["error"]["details"]["error_code"] == "thread_not_found"


def test_models(gateway: Gateway, client: Anthropic) -> None:
    listed = [model.id for model in client.models.list()]
    assert {gateway.model(upstream) for upstream in UPSTREAMS} <= set(listed)
    assert client.models.retrieve("demo/echo-tools").id == "demo/echo-tools"


ERRORS = [
    (400, anthropic.BadRequestError, "invalid_request_error"),
    (401, anthropic.AuthenticationError, "authentication_error"),
    (403, anthropic.PermissionDeniedError, "permission_error"),
    (404, anthropic.NotFoundError, "not_found_error"),
    (413, anthropic.RequestTooLargeError, "request_too_large"),
    (429, anthropic.RateLimitError, "rate_limit_error"),
    (500, anthropic.InternalServerError, "api_error"),
    (529, anthropic.OverloadedError, "overloaded_error"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize(("status", "kind", "word"), ERRORS, ids=[word for _, _, word in ERRORS])
def test_errors_of_the_back_end(
    gateway: Gateway,
    client: Anthropic,
    upstream: str,
    status: int,
    kind: type[anthropic.APIStatusError],
    word: str,
    stream: bool,
) -> None:
    prompt = scripted({"error": {"status": status, "message": f"Model says {status}.", "code": "script_error"}})
    talk = Talk(gateway.model(upstream), prompt)
    with pytest.raises(kind, match=f"Model says {status}") as caught:
        client.messages.create(stream=stream, **talk.request)
    body: Any = caught.value.body
    assert (caught.value.status_code, body["error"]["type"]) == (status, word)
    assert caught.value.request_id


def test_errors_of_the_gateway(gateway: Gateway, client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="nowhere/none"):
        client.messages.create(model="nowhere/none", max_tokens=5, messages=[{"role": "user", "content": "hello"}])
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        client.messages.create(model="demo/echo-tools", max_tokens=5, messages=5)  # type: ignore[call-overload]
    with pytest.raises(anthropic.AuthenticationError, match="key"):
        client.with_options(api_key="wrong").models.list()


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_error_in_mid_stream(gateway: Gateway, client: Anthropic, upstream: str) -> None:
    error = {"status": 529, "message": "Broke.", "after": 2}
    talk = Talk(gateway.model(upstream), scripted({"text": "one two three four", "chunk": 4, "error": error}))
    texts: list[str] = []
    with pytest.raises(anthropic.APIStatusError, match="Broke"), client.messages.stream(**talk.request) as stream:
        texts.extend(stream.text_stream)
    assert "".join(texts) == "one two "


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_compacted_conversation(client: Anthropic, gateway: Gateway, upstream: str, *, is_stream: bool) -> None:
    """The block that the client gets goes back first, in place of the conversation."""
    request: dict[str, Any] = {"model": gateway.model(upstream), "max_tokens": 500, "betas": ["compact-2026-09-04"]}
    asked = {"role": "user", "content": scripted({"text": "All of it."})}
    call: Any = {**request, "messages": [asked], "compaction": {"type": "summarize"}}
    if is_stream:
        with client.beta.messages.stream(**call) as stream:
            made: Any = stream.get_final_message()
    else:
        made = client.beta.messages.create(**call)
    assert made.stop_reason == "compaction"
    (block,) = made.content
    assert (block.type, block.content) == ("compaction", "All of it.")
    last = {"role": "user", "content": scripted({"text": "I remember."})}
    following: Any = {**request, "messages": [{"role": "assistant", "content": [block.to_dict()]}, last]}
    answer: Any = client.beta.messages.create(**following)
    assert answer.content[0].text == "I remember."
