"""pydantic-ai on each of the three dialects, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases import ADDRESS, KEY, MODEL, case, main, read_file, write_file
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider


def openai() -> OpenAIProvider:
    return OpenAIProvider(base_url=f"{ADDRESS}/v1", api_key=KEY)


MODELS: dict[str, Callable[[], Any]] = {
    "chat": lambda: OpenAIChatModel(MODEL, provider=openai()),
    "responses": lambda: OpenAIResponsesModel(MODEL, provider=openai()),
    "messages": lambda: AnthropicModel(MODEL, provider=AnthropicProvider(base_url=ADDRESS, api_key=KEY)),
}


async def drain(context: Any, events: Any) -> None:
    async for _ in events:
        pass


def add(name: str, build: Callable[[], Any]) -> None:
    @case(name)
    async def whole(prompt: str) -> str:
        return str((await Agent(build(), tools=[read_file, write_file]).run(prompt)).output)

    @case(f"{name}-stream")
    async def streamed(prompt: str) -> str:
        agent = Agent(build(), tools=[read_file, write_file])
        return str((await agent.run(prompt, event_stream_handler=drain)).output)


for dialect, builder in MODELS.items():
    add(dialect, builder)

if __name__ == "__main__":
    main()
