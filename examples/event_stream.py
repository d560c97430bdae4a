"""Events as they occur: text while the model writes it, calls, results and the usage at the end."""

import asyncio
from contextlib import aclosing

from toolwire import (
    Agent,
    CompleteEvent,
    Context,
    StatusEvent,
    TextEvent,
    ToolCallEvent,
    ToolErrorEvent,
    ToolResultEvent,
)


def count_words(text: str, context: Context) -> int:
    """Count the words of a text."""
    words = text.split()
    context.progress("counting", done=len(words), total=len(words))
    return len(words)


async def main() -> None:
    agent = Agent("demo/echo-tools", [count_words])
    async with agent, aclosing(agent.stream('count_words text="one two three"')) as events:
        async for event in events:
            match event:
                case TextEvent(text=text):
                    print(text, end="")
                case ToolCallEvent(name=name, arguments=arguments):
                    print(f"> {name} {arguments}")
                case StatusEvent(status="running", detail=detail):
                    print(f". {detail}")
                case ToolResultEvent():
                    print(f"< {event.text}")
                case ToolErrorEvent(kind=kind, message=message):
                    print(f"! {kind}: {message}")
                case CompleteEvent(reason=reason, iterations=iterations):
                    print(f"\n({reason} after {iterations} requests)")


if __name__ == "__main__":
    asyncio.run(main())
