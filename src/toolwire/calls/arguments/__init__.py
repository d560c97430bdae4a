"""What a model wants a tool to do: judged, repaired where one meaning is left, and answered where it cannot be done."""

from .feedback import Invalid, Problem, tool_error, unknown_tool
from .judge import Repaired, Valid, Verdict, judge

__all__ = ["Invalid", "Problem", "Repaired", "Valid", "Verdict", "judge", "tool_error", "unknown_tool"]
