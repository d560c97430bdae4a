"""CrewAI with two tools: python examples/crewai_agent.py [MODEL]

pip install crewai; the gateway must run (toolwire serve).
"""

import os
import sys

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


@tool("get_weather")
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees and rain in {city}"


@tool("get_time")
def get_time(city: str) -> str:
    """The time in a city."""
    return f"12:30 in {city}"


model = LLM(
    model=sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools",
    provider="openai",
    base_url=os.environ.get("TOOLWIRE_URL", "http://127.0.0.1:18741") + "/v1",
    api_key=os.environ.get("TOOLWIRE_KEY", "toolwire"),
)
helper = Agent(
    role="Guide", goal="Help travellers", backstory="You know cities.", llm=model, tools=[get_weather, get_time]
)
task = Task(description="Use get_weather and get_time for Paris.", expected_output="What was found.", agent=helper)
print(Crew(agents=[helper], tasks=[task], tracing=False).kickoff())
