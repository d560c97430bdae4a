"""AutoGen with two tools: python examples/autogen_agent.py [MODEL]

pip install autogen-agentchat 'autogen-ext[openai]'; the gateway must run (toolwire serve).
"""

import asyncio
import os
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees and rain in {city}"


def get_time(city: str) -> str:
    """The time in a city."""
    return f"12:30 in {city}"


async def main(model: str) -> None:
    client = OpenAIChatCompletionClient(
        model=model,
        base_url=os.environ.get("TOOLWIRE_URL", "http://127.0.0.1:18741") + "/v1",
        api_key=os.environ.get("TOOLWIRE_KEY", "toolwire"),
        model_info={  # AutoGen knows only OpenAI's own names
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "structured_output": False,
            "family": "unknown",
        },
    )
    agent = AssistantAgent("helper", client, tools=[get_weather, get_time], max_tool_iterations=5)
    result = await agent.run(task="Use get_weather and get_time for Paris.")
    print(result.messages[-1].content)
    await client.close()


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools"))
