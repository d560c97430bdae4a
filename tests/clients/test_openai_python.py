"""OpenAI's own Python client against the gateway: Chat Completions and Responses, through every kind of back end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel

from tests.clients.gateway import KINDS, Gateway, scripted

pytestmark = pytest.mark.slow

UPSTREAMS = tuple(KINDS)
ASKS_PARIS = {
    "text": "Let me look.",
    "calls": [{"id": "call_1", "name": "GetWeather", "arguments": '{"location": "Paris"}'}],
}
TELLS = {"text": "It is {{result:0}}.", "usage": {"input": 50, "output": 9}}
WEATHER_LOOP = scripted(ASKS_PARIS, TELLS)
ANSWER = "It is 18 C and rain."


class GetWeather(BaseModel):
    """The weather at a place."""

    location: str


class Report(BaseModel):
    city: str
    degrees: int


TOOL = pydantic_function_tool(GetWeather, name="GetWeather")
FLAT_TOOL: Any = {"type": "function", **TOOL["function"]}


def weather(arguments: str) -> str:
    assert json.loads(arguments) == {"location": "Paris"}
    return "18 C and rain"


@pytest.fixture
def client(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=gateway.openai_url, api_key=gateway.key, max_retries=0, timeout=20) as opened:
        yield opened


@asynccontextmanager
async def asynchronous(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=gateway.openai_url, api_key=gateway.key, max_retries=0, timeout=20) as opened:
        yield opened


class Chat:
    """A conversation by Chat Completions: what to send next, and what came of the last answer."""

    def __init__(self, model: str, prompt: str) -> None:
        self.messages: list[Any] = [{"role": "user", "content": prompt}]
        self.request: dict[str, Any] = {"model": model, "tools": [TOOL], "messages": self.messages}

    def take(self, message: Any) -> None:
        """An answer with a call: run it."""
        assert message.content == "Let me look."
        (call,) = message.tool_calls
        assert (call.id, call.function.name) == ("call_1", "GetWeather")
        self.messages.append(message.to_dict())
        content = weather(call.function.arguments)
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


class Turns:
    """The same by Responses."""

    def __init__(self, model: str, prompt: str) -> None:
        self.items: list[Any] = [{"role": "user", "content": prompt}]
        self.request: dict[str, Any] = {"model": model, "tools": [FLAT_TOOL], "input": self.items, "store": False}

    def take(self, response: Any) -> None:
        assert response.status == "completed"
        assert response.output_text == "Let me look."
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert (call.call_id, call.name) == ("call_1", "GetWeather")
        self.items += [item.to_dict(exclude_none=True) for item in response.output]
        output = weather(call.arguments)
        self.items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_create(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    chat = Chat(gateway.model(upstream), WEATHER_LOOP)
    first = client.chat.completions.create(**chat.request)
    assert first.choices[0].finish_reason == "tool_calls"
    chat.take(first.choices[0].message)
    last = client.chat.completions.create(**chat.request)
    assert last.choices[0].message.content == ANSWER
    assert last.choices[0].finish_reason == "stop"
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (50, 9)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_raw_stream(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    chat = Chat(gateway.model(upstream), WEATHER_LOOP)
    text, arguments, finish = "", "", None
    for chunk in client.chat.completions.create(stream=True, **chat.request):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or ():
                assert call.function is not None
                arguments += call.function.arguments or ""
    assert text == "Let me look."
    assert weather(arguments)
    assert finish == "tool_calls"


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_stream_helper(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    chat = Chat(gateway.model(upstream), WEATHER_LOOP)
    with client.chat.completions.stream(**chat.request, stream_options={"include_usage": True}) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_completion()
    assert {"content.delta", "content.done", "tool_calls.function.arguments.done"} <= kinds
    call = first.choices[0].message.tool_calls[0]  # type: ignore[index]
    assert call.function.parsed_arguments == GetWeather(location="Paris")
    # As people do it: the parsed message goes back without the members that only the helper knows.
    message = first.choices[0].message
    chat.messages.append({"role": "assistant", "content": message.content, "tool_calls": [_plain(call)]})
    result = weather(call.function.arguments)
    chat.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    with client.chat.completions.stream(**chat.request, stream_options={"include_usage": True}) as stream:
        last = stream.get_final_completion()
    assert last.choices[0].message.content == ANSWER
    assert last.usage is not None
    assert last.usage.total_tokens == 59


def _plain(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_asynchronous(gateway: Gateway, upstream: str) -> None:
    async def main() -> None:
        chat = Chat(gateway.model(upstream), WEATHER_LOOP)
        async with asynchronous(gateway) as client:
            first = await client.chat.completions.create(**chat.request)
            chat.take(first.choices[0].message)
            async with client.chat.completions.stream(**chat.request) as stream:
                texts = [event.delta async for event in stream if event.type == "content.delta"]
                last = await stream.get_final_completion()
            assert "".join(texts) == last.choices[0].message.content == ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_parse(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    prompt = scripted({"text": '{"city": "Oslo", "degrees": -3}'})
    completion = client.chat.completions.parse(
        model=gateway.model(upstream), messages=[{"role": "user", "content": prompt}], response_format=Report
    )
    assert completion.choices[0].message.parsed == Report(city="Oslo", degrees=-3)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_create(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    turns = Turns(gateway.model(upstream), WEATHER_LOOP)
    turns.take(client.responses.create(**turns.request))
    last = client.responses.create(**turns.request)
    assert last.output_text == ANSWER
    assert last.usage is not None
    assert (last.usage.input_tokens, last.usage.output_tokens) == (50, 9)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_raw_stream(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    turns = Turns(gateway.model(upstream), WEATHER_LOOP)
    events = list(client.responses.create(stream=True, **turns.request))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed"
    turns.take(events[-1].response)
    events = list(client.responses.create(stream=True, **turns.request))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == ANSWER


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_stream_helper(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    turns = Turns(gateway.model(upstream), WEATHER_LOOP)
    with client.responses.stream(**turns.request) as stream:
        arguments = [event.delta for event in stream if event.type == "response.function_call_arguments.delta"]
        first = stream.get_final_response()
    assert weather("".join(arguments))
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert call.parsed_arguments == {"location": "Paris"}
    output = weather(call.arguments)
    turns.items += [
        {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
        {"type": "function_call_output", "call_id": call.call_id, "output": output},
    ]
    with client.responses.stream(**turns.request) as stream:
        last = stream.get_final_response()
    assert last.output_text == ANSWER


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_asynchronous(gateway: Gateway, upstream: str) -> None:
    async def main() -> None:
        turns = Turns(gateway.model(upstream), WEATHER_LOOP)
        async with asynchronous(gateway) as client:
            turns.take(await client.responses.create(**turns.request))
            async with client.responses.stream(**turns.request) as stream:
                texts = [event.delta async for event in stream if event.type == "response.output_text.delta"]
                last = await stream.get_final_response()
            assert "".join(texts) == last.output_text == ANSWER

    asyncio.run(main())


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_parse(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    prompt = scripted({"text": '{"city": "Oslo", "degrees": -3}'})
    response = client.responses.parse(model=gateway.model(upstream), input=prompt, text_format=Report)
    assert response.output_parsed == Report(city="Oslo", degrees=-3)


def test_models(gateway: Gateway, client: OpenAI) -> None:
    listed = [model.id for model in client.models.list()]
    assert {gateway.model(upstream) for upstream in UPSTREAMS} <= set(listed)
    assert "demo/echo-tools" in listed
    assert client.models.retrieve("demo/echo-tools").id == "demo/echo-tools"


ERRORS = [
    (400, openai.BadRequestError),
    (401, openai.AuthenticationError),
    (403, openai.PermissionDeniedError),
    (404, openai.NotFoundError),
    (422, openai.UnprocessableEntityError),
    (429, openai.RateLimitError),
    (500, openai.InternalServerError),
    (529, openai.InternalServerError),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize(("status", "kind"), ERRORS, ids=[str(status) for status, _ in ERRORS])
def test_errors_of_the_back_end(
    gateway: Gateway, client: OpenAI, upstream: str, status: int, kind: type[openai.APIStatusError], stream: bool
) -> None:
    prompt = scripted({"error": {"status": status, "message": f"Model says {status}.", "code": "script_error"}})
    with pytest.raises(kind, match=f"Model says {status}"):
        client.chat.completions.create(
            model=gateway.model(upstream), messages=[{"role": "user", "content": prompt}], stream=stream
        )
    with pytest.raises(kind, match=f"Model says {status}") as caught:
        client.responses.create(model=gateway.model(upstream), input=prompt, stream=stream)
    assert caught.value.status_code == status
    assert caught.value.type
    assert caught.value.request_id


def test_errors_of_the_gateway(gateway: Gateway, client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nowhere/none"):
        client.responses.create(model="nowhere/none", input="hello")
    with pytest.raises(openai.NotFoundError, match="nowhere"):
        client.models.retrieve("nowhere")
    with pytest.raises(openai.BadRequestError, match="messages"):
        client.chat.completions.create(model="demo/echo-tools", messages=5)  # type: ignore[call-overload]
    with pytest.raises(openai.AuthenticationError, match="key") as caught:
        client.with_options(api_key="wrong").models.list()
    assert caught.value.code == "authentication_failed"


def test_key_that_the_back_end_refuses(client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError, match="key") as caught:
        client.responses.create(model="locked/scripted", input="hello")
    assert "not-the-upstream-key" not in str(caught.value)


BREAKS = scripted({"text": "one two three four", "chunk": 4, "error": {"status": 529, "message": "Broke.", "after": 2}})


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_error_in_mid_stream_of_chat(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    text = ""
    request: Any = {"model": gateway.model(upstream), "messages": [{"role": "user", "content": BREAKS}]}
    with pytest.raises(openai.APIError, match="Broke"):  # noqa: PT012 # the first chunks come before it
        for chunk in client.chat.completions.create(stream=True, **request):
            text += chunk.choices[0].delta.content or ""
    assert text == "one two "


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_error_in_mid_stream_of_responses(gateway: Gateway, client: OpenAI, upstream: str) -> None:
    events = list(client.responses.create(model=gateway.model(upstream), input=BREAKS, stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "one two "
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert "Broke." in last.response.error.message


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # of the library that the SDK uses
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_tool_loop_over_a_websocket(client: OpenAI, gateway: Gateway, upstream: str) -> None:
    """Each request contains only what is new; the answers are not stored."""
    common: Any = {"model": gateway.model(upstream), "store": False, "tools": [FLAT_TOOL]}
    with client.responses.connect() as connection:
        connection.response.create(**common, input=WEATHER_LOOP, stream_id="loop")
        answer = _last_response(connection)
        for item in answer.output:
            if item.type == "function_call":
                result = {"type": "function_call_output", "call_id": item.call_id, "output": weather(item.arguments)}
        connection.response.create(**common, input=[result], previous_response_id=answer.id, stream_id="loop")
        assert _last_response(connection).output_text == ANSWER


def _last_response(connection: Any) -> Any:
    for event in connection:
        assert event.stream_id == "loop"
        if event.type == "response.completed":
            return event.response
    raise AssertionError("the connection ended without an answer")


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_compacted_conversation(client: OpenAI, gateway: Gateway, upstream: str) -> None:
    model = gateway.model(upstream)
    made = client.responses.compact(model=model, input=[{"role": "user", "content": scripted({"text": "All of it."})}])
    assert made.output[-1].type == "compaction"
    item: Any = made.output[-1].to_dict()
    ask: Any = {"role": "user", "content": scripted({"text": "I remember."})}
    assert client.responses.create(model=model, input=[item, ask]).output_text == "I remember."
