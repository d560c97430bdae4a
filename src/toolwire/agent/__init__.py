"""The tool loop as a library: agents, and conversations as plain data."""

from .agent import Agent, Result
from .conversation import Conversation
from .hooks import AgentHooks
from .loop import Terms
from .prompt import Prompt, file, image
from .toolbox import Decision

__all__ = ["Agent", "AgentHooks", "Conversation", "Decision", "Prompt", "Result", "Terms", "file", "image"]
