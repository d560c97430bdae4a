"""The tool loop as a library: an agent with a model and tools, and conversations as plain data."""

from ..loop_tools import Decision
from ..looping import Terms
from .agent import Agent, Result
from .conversation import Conversation

__all__ = ["Agent", "Conversation", "Decision", "Result", "Terms"]
