"""Semantic Kernel: an agent with a plugin of two functions, which it calls by itself."""

from __future__ import annotations

import asyncio

import tools
from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function
from tools import INSTRUCTIONS, Deep, task, tell


class Searches:
    @kernel_function(name="localSearch", description="Search the notes.")
    def local(self, query: str, limit: int = 5) -> str:
        return tools.localSearch(query, limit)

    @kernel_function(name="webSearch", description="Search the web.")
    def web(self, query: str, deep: Deep | None = None) -> str:
        return tools.webSearch(query, deep)


async def main() -> None:
    client = AsyncOpenAI(base_url=f"{task['address']}/v1", api_key=task["key"], max_retries=0)
    service = OpenAIChatCompletion(ai_model_id=task["model"], async_client=client)
    agent = ChatCompletionAgent(service=service, name="helper", instructions=INSTRUCTIONS, plugins=[Searches()])
    answer = await agent.get_response(messages=task["prompt"])
    tell(str(answer.content))


asyncio.run(main())
