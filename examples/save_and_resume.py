"""Save a conversation and continue it with another model: python examples/save_and_resume.py [MODEL [OTHER]]"""

import sys
import tempfile
from pathlib import Path

from toolwire import Agent, Conversation


def roll_dice(sides: int = 6) -> int:
    """Roll dice."""
    return sides - 2


first, second = (*sys.argv[1:], "demo/echo-tools", "demo/echo-tools")[:2]
path = Path(tempfile.mkdtemp()) / "talk.json"

result = Agent(first, tools=[roll_dice]).run_sync("Roll dice")
print(f"{first}: {result.text}")
result.conversation.save(path)

conversation = Conversation.load(path)
result = Agent(second, tools=[roll_dice]).run_sync("Roll dice again", conversation)
print(f"{second}: {result.text}")
print(f"{len(conversation.messages)} messages then, {len(result.conversation.messages)} now")
