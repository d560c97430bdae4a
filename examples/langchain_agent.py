"""LangChain with two tools: python examples/langchain_agent.py [MODEL]

pip install langchain langchain-openai; the gateway must run (toolwire serve).
"""

import os
import sys

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees and rain in {city}"


def get_time(city: str) -> str:
    """The time in a city."""
    return f"12:30 in {city}"


model = ChatOpenAI(
    model=sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools",
    base_url=os.environ.get("TOOLWIRE_URL", "http://127.0.0.1:18741") + "/v1",
    api_key=os.environ.get("TOOLWIRE_KEY", "toolwire"),
)
agent = create_agent(model, tools=[get_weather, get_time])
question = "Use get_weather and get_time for Paris."
print(agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].text)
