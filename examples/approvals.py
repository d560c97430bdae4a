"""Approve calls of tools that change something: python examples/approvals.py [MODEL]"""

import sys

from toolwire import Agent, Decision, tool
from toolwire.agent.events import ToolCallEvent
from toolwire.tools import Runnable


@tool(changes_things=False)
def list_files() -> list[str]:
    """List the files."""
    return ["notes.txt", "old.txt"]


@tool
def delete_file(name: str) -> str:
    """Delete a file."""
    return f"{name} is gone"


def approve(call: ToolCallEvent, called: Runnable) -> Decision | None:
    if not called.changes_things:
        return None  # needs no approval
    if not sys.stdin.isatty():
        return Decision(is_allowed=False, reason="No terminal to ask for approval.")
    answer = input(f"{call.name} {call.arguments}? [y/n, or another name] ")
    return Decision(is_allowed=answer != "n", arguments=None if answer in ("y", "n") else {"name": answer})


agent = Agent(sys.argv[1] if len(sys.argv) > 1 else "demo/echo-tools", tools=[list_files, delete_file], approve=approve)
for prompt in ("list files", 'delete file with the name "old.txt"'):
    print(agent.run_sync(prompt).text)
