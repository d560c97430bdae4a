"""Print the events of an agent: python examples/streaming.py [MODEL]"""

import asyncio
import sys

from toolwire import Agent
from toolwire.agent.events import CompleteEvent, TextEvent, ToolCallEvent, ToolErrorEvent, ToolResultEvent


async def search_files(pattern: str) -> list[str]:
    """Find files by a pattern."""
    await asyncio.sleep(0.01)
    return ["notes.txt", "todo.txt"]


async def main(model: str) -> None:
    agent = Agent(model, tools=[search_files])
    async for event in agent.stream('Search files with the pattern "*.txt"'):
        match event:
            case TextEvent(text=text):
                print(text, end="", flush=True)
            case ToolCallEvent(name=name, arguments=arguments):
                print(f"> {name} {arguments}")
            case ToolResultEvent():
                print(f"< {event.text}")
            case ToolErrorEvent(kind=kind, message=message):
                print(f"! {kind}: {message}")
            case CompleteEvent(reason=reason):
                print(f"\n({reason})")


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools"))
