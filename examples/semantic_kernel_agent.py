"""Semantic Kernel with two tools: python examples/semantic_kernel_agent.py [MODEL]

pip install semantic-kernel; the gateway must run (toolwire serve).
"""

import asyncio
import os
import sys

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class City:
    @kernel_function(description="The weather in a city.")
    def get_weather(self, city: str) -> str:
        return f"18 degrees and rain in {city}"

    @kernel_function(description="The time in a city.")
    def get_time(self, city: str) -> str:
        return f"12:30 in {city}"


async def main(model: str) -> None:
    client = AsyncOpenAI(
        base_url=os.environ.get("TOOLWIRE_URL", "http://127.0.0.1:18741") + "/v1",
        api_key=os.environ.get("TOOLWIRE_KEY", "toolwire"),
    )
    service = OpenAIChatCompletion(ai_model_id=model, async_client=client)
    agent = ChatCompletionAgent(service=service, name="helper", plugins=[City()])
    print((await agent.get_response(messages="Use get_weather and get_time for Paris.")).content)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools"))
