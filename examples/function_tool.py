"""A function as a tool: python examples/function_tool.py [MODEL]"""

import sys

from toolwire import Agent


def get_weather(city: str, days: int = 1) -> str:
    """What the weather will be.

    Args:
        city: Where.
        days: How many days from today.
    """
    return f"{city}: rain, {days} day(s) long"


# The demo model needs no account. With a key in the environment: anthropic/claude-..., openai/gpt-...
agent = Agent(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools", tools=[get_weather])
result = agent.run_sync("What is the weather in Paris?")
print(result.text)
print(f"{result.iterations} requests, {result.usage.input + result.usage.output} tokens, ended by: {result.reason}")
