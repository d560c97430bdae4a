"""An agent of the official SDKs, recorded once and replayed in every dialect, with and without damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.errors import ConfigError
from toolwire.testing import CassetteGateway

pytestmark = pytest.mark.slow

DEMO = with_backends(Config(), (BackendConfig(name="demo", kind="demo"),))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
MODEL = "demo/echo-tools"
SYSTEM, QUESTION, RESULT = "Be brief.", "What is the weather in Paris?", "18 C, rain"


def chat_agent(gateway: CassetteGateway, question: str = QUESTION) -> str:
    client = openai.OpenAI(base_url=gateway.base_url, api_key="x", max_retries=0)
    tools: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages: list[Any] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=tools).choices[0].message
    assert first.tool_calls
    messages += [
        first.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": RESULT},
    ]
    stream = client.chat.completions.create(model=MODEL, messages=messages, tools=tools, stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def responses_agent(gateway: CassetteGateway) -> str:
    """The second request refers to the first answer."""
    client = openai.OpenAI(base_url=gateway.base_url, api_key="x", max_retries=0)
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}]
    first = client.responses.create(model=MODEL, instructions=SYSTEM, input=QUESTION, tools=tools)
    call: Any = next(item for item in first.output if item.type == "function_call")
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT}]
    second = client.responses.create(
        model=MODEL, instructions=SYSTEM, previous_response_id=first.id, input=output, tools=tools
    )
    return second.output_text


def messages_agent(gateway: CassetteGateway) -> str:
    client = anthropic.Anthropic(base_url=gateway.address, api_key="x", max_retries=0)
    tools: Any = [{"name": "get_weather", "input_schema": SCHEMA}]
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    shared: Any = {"model": MODEL, "max_tokens": 100, "system": SYSTEM, "tools": tools}
    first = client.messages.create(messages=messages, **shared)
    call: Any = next(block for block in first.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
    messages += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    with client.messages.stream(messages=messages, **shared) as stream:
        return str(stream.get_final_text())


AGENTS = {"chat": chat_agent, "responses": responses_agent, "messages": messages_agent}


@pytest.fixture(scope="module", params=AGENTS)
def cassette(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cassettes") / f"{request.param}.jsonl"
    with CassetteGateway.record(file, DEMO) as gateway:
        text = AGENTS[request.param](gateway)
    assert RESULT in text
    assert len(file.read_text().splitlines()) == 2
    return file


@pytest.mark.parametrize("dialect", AGENTS)
def test_a_recorded_agent_is_replayed_in_every_dialect(cassette: Path, dialect: str) -> None:
    with CassetteGateway.replay(cassette) as gateway:
        assert RESULT in AGENTS[dialect](gateway)
        assert gateway.misses == []
        assert gateway.unused == []


def test_another_prompt_is_a_miss(cassette: Path) -> None:
    with CassetteGateway.replay(cassette) as gateway:
        with pytest.raises(openai.BadRequestError, match=r"received user .*Rome"):
            chat_agent(gateway, "What is the weather in Rome?")
        assert "message 1 differs" in gateway.misses[0]


@pytest.mark.parametrize(
    ("damage", "error"),
    [("429@1", openai.RateLimitError), ("500@1", openai.InternalServerError), ("cut@2", openai.APIError)],
)
def test_damage_reaches_the_client(cassette: Path, damage: str, error: type[Exception]) -> None:
    with CassetteGateway.replay(cassette, damage=(damage,)) as gateway, pytest.raises(error):
        chat_agent(gateway)


def test_without_a_model_there_is_nothing_to_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = Config(backends=(BackendConfig(name="demo", kind="demo"),))

    async def found(path: Path | None) -> Config:
        return empty

    monkeypatch.setattr("toolwire.testing.gateway.found_config", found)
    with pytest.raises(ConfigError, match="no model to record"):
        CassetteGateway.record(tmp_path / "c.jsonl")
