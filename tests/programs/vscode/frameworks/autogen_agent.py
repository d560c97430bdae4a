"""AutoGen: an assistant with two tools and a client for OpenAI's API, every answer streamed."""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from tools import INSTRUCTIONS, localSearch, task, tell, webSearch

SKILLS = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False}


async def main() -> None:
    client = OpenAIChatCompletionClient(
        model=task["model"],
        base_url=f"{task['address']}/v1",
        api_key=task["key"],
        model_info={**SKILLS, "family": "unknown"},
        max_retries=0,
    )
    agent = AssistantAgent(
        "helper",
        model_client=client,
        tools=[localSearch, webSearch],
        system_message=INSTRUCTIONS,
        max_tool_iterations=5,
        model_client_stream=True,
    )
    done = await agent.run(task=task["prompt"])
    tell(str(done.messages[-1].content))
    await client.close()


asyncio.run(main())
