"""Google's own Python client against the gateway: text, streams, tools, thoughts, schemas, counts and errors, on every kind of back end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from tests.clients.gateway import KINDS, Gateway, scripted

genai = pytest.importorskip("google.genai")
types = genai.types
errors = genai.errors

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:google"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:aiohttp"),
]

UPSTREAMS = tuple(KINDS)
CALL = {"id": "call_1", "name": "get_weather", "arguments": '{"location": "Zürich"}'}
ASKS = {"text": "Let me look.", "calls": [CALL], "usage": {"input": 40, "output": 7}}
TELLS = {"text": "It is {{result:0}}.", "usage": {"input": 50, "output": 9}}
LOOP = scripted(ASKS, TELLS)
DECLARED = {
    "name": "get_weather",
    "description": "The weather at a place.",
    "parameters_json_schema": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}
each_upstream = pytest.mark.parametrize("upstream", UPSTREAMS)
each_way = pytest.mark.parametrize("verbatim", ["auto", "never"])


class Report(BaseModel):
    city: str
    degrees: int


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Any]:
    options = types.HttpOptions(base_url=gateway.address, timeout=20_000)
    with genai.Client(api_key=gateway.key, http_options=options) as opened:
        yield opened


def tools(**members: Any) -> Any:
    declared = types.Tool(function_declarations=[types.FunctionDeclaration(**DECLARED)])
    off = types.AutomaticFunctionCallingConfig(disable=True)
    return types.GenerateContentConfig(tools=[declared], automatic_function_calling=off, **members)


def answer_to(call: Any, said: str) -> Any:
    response = types.FunctionResponse(id=call.id, name=call.name, response={"output": said})
    return types.Content(role="user", parts=[types.Part(function_response=response)])


def user(text: str) -> Any:
    return types.Content(role="user", parts=[types.Part(text=text)])


@each_way
@each_upstream
def test_generate_content_with_a_tool(gateway: Gateway, client: Any, upstream: str, verbatim: str) -> None:
    model = gateway.model(upstream, verbatim)
    first = client.models.generate_content(model=model, contents=[user(LOOP)], config=tools())
    (call,) = first.function_calls
    assert (call.name, call.args) == ("get_weather", {"location": "Zürich"})
    assert call.id
    assert first.candidates[0].finish_reason == types.FinishReason.STOP
    assert first.usage_metadata.prompt_token_count == 40
    contents = [user(LOOP), first.candidates[0].content, answer_to(call, "18 C")]
    last = client.models.generate_content(model=model, contents=contents, config=tools())
    assert last.text == "It is 18 C."
    assert (last.usage_metadata.prompt_token_count, last.usage_metadata.candidates_token_count) == (50, 9)


@each_way
@each_upstream
def test_a_stream_with_tools(gateway: Gateway, client: Any, upstream: str, verbatim: str) -> None:
    model = gateway.model(upstream, verbatim)
    chunks = list(client.models.generate_content_stream(model=model, contents=LOOP, config=tools()))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert "".join(part.text for part in parts if part.text) == "Let me look."
    (call,) = [part.function_call for part in parts if part.function_call]
    assert call.args == {"location": "Zürich"}
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    contents = [user(LOOP), types.Content(role="model", parts=parts), answer_to(call, "18 C")]
    last = client.models.generate_content_stream(model=model, contents=contents, config=tools())
    assert "".join(chunk.text or "" for chunk in last) == "It is 18 C."


@each_upstream
def test_functions_that_the_library_runs_itself(gateway: Gateway, client: Any, upstream: str) -> None:
    def get_weather(location: str) -> str:
        """The weather at a place."""
        return f"18 C in {location}"

    config = types.GenerateContentConfig(tools=[get_weather])
    answer = client.models.generate_content(model=gateway.model(upstream), contents=LOOP, config=config)
    assert answer.text == "It is 18 C in Zürich."


@each_upstream
def test_parallel_calls(gateway: Gateway, client: Any, upstream: str) -> None:
    calls = [{"name": "get_weather", "arguments": f'{{"location": "{city}"}}'} for city in ("A", "B", "C")]
    prompt = scripted({"calls": calls}, {"text": "{{result:0}}, {{result:1}}, {{result:2}}"})
    model = gateway.model(upstream)
    first = client.models.generate_content(model=model, contents=[user(prompt)], config=tools())
    assert [call.args["location"] for call in first.function_calls] == ["A", "B", "C"]
    assert len({call.id for call in first.function_calls}) == 3
    responses = [answer_to(call, call.args["location"].lower()).parts[0] for call in first.function_calls]
    contents = [user(prompt), first.candidates[0].content, types.Content(role="user", parts=responses)]
    assert client.models.generate_content(model=model, contents=contents, config=tools()).text == "a, b, c"


@each_upstream
def test_a_chat_keeps_its_history(gateway: Gateway, client: Any, upstream: str) -> None:
    chat = client.chats.create(model=gateway.model(upstream), config=tools())
    (call,) = chat.send_message(LOOP).function_calls
    reply = answer_to(call, "rain").parts[0]
    assert "".join(chunk.text or "" for chunk in chat.send_message_stream(reply)) == "It is rain."


@each_upstream
def test_thoughts_are_separate_parts(gateway: Gateway, client: Any, upstream: str) -> None:
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)
    )
    prompt = scripted({"reasoning": "let me think", "text": "So."})
    answer = client.models.generate_content(model=gateway.model(upstream), contents=prompt, config=config)
    parts = answer.candidates[0].content.parts
    assert "".join(part.text for part in parts if part.text and not part.thought) == "So."
    assert "".join(part.text for part in parts if part.text and part.thought) == "let me think"


@each_upstream
def test_structured_output(gateway: Gateway, client: Any, upstream: str) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Report)
    prompt = scripted({"text": '{"city": "Zürich", "degrees": 18}'})
    answer = client.models.generate_content(model=gateway.model(upstream), contents=prompt, config=config)
    assert answer.parsed == Report(city="Zürich", degrees=18)


@each_upstream
def test_asynchronous(gateway: Gateway, client: Any, upstream: str) -> None:
    async def main() -> str:
        model = gateway.model(upstream)
        stream = await client.aio.models.generate_content_stream(
            model=model, contents=scripted({"text": "one two three"})
        )
        text = "".join([chunk.text or "" async for chunk in stream])
        await client.aio.aclose()
        return text

    assert asyncio.run(main()) == "one two three"


def test_tokens_and_models(gateway: Gateway, client: Any) -> None:
    assert client.models.count_tokens(model=gateway.model("gemini"), contents="how many?").total_tokens > 0
    names = [model.name for model in client.models.list()]
    assert f"models/{gateway.model('gemini')}" in names
    assert client.models.get(model=gateway.model("chat")).name == f"models/{gateway.model('chat')}"


@each_upstream
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
def test_errors(gateway: Gateway, client: Any, upstream: str, is_stream: bool) -> None:
    prompt = scripted({"error": {"status": 429, "message": "slow down"}})
    ask = client.models.generate_content_stream if is_stream else client.models.generate_content
    with pytest.raises(errors.ClientError) as caught:
        list(ask(model=gateway.model(upstream), contents=prompt))
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    assert "slow down" in caught.value.message


def test_a_wrong_key_is_refused(gateway: Gateway) -> None:
    with genai.Client(api_key="wrong", http_options=types.HttpOptions(base_url=gateway.address)) as opened:
        with pytest.raises(errors.ClientError) as caught:
            opened.models.generate_content(model=gateway.model("chat"), contents="hi")
        assert caught.value.code == 401
