"""OpenAI's Agents SDK on Chat Completions and Responses, whole and streamed."""

from __future__ import annotations

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from cases import ADDRESS, KEY, MODEL, case, main, read_file, write_file
from openai import AsyncOpenAI

set_tracing_disabled(True)


def agent(kind: Any) -> Any:
    client = AsyncOpenAI(base_url=f"{ADDRESS}/v1", api_key=KEY, max_retries=0, timeout=20)
    tools: Any = [function_tool(read_file), function_tool(write_file)]
    return Agent(name="worker", model=kind(model=MODEL, openai_client=client), tools=tools)


def add(name: str, kind: Any) -> None:
    @case(name)
    async def whole(prompt: str) -> str:
        return str((await Runner.run(agent(kind), prompt)).final_output)

    @case(f"{name}-stream")
    async def streamed(prompt: str) -> str:
        result = Runner.run_streamed(agent(kind), prompt)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)


add("chat", OpenAIChatCompletionsModel)
add("responses", OpenAIResponsesModel)

if __name__ == "__main__":
    main()
