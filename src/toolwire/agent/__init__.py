"""The tool loop as a library: agents, and conversations as plain data."""

from .agent import Agent, Result
from .conversation import Conversation
from .loop import Terms
from .toolbox import Decision

__all__ = ["Agent", "Conversation", "Decision", "Result", "Terms"]
