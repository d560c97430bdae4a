"""What a model wants a tool to do: judged, repaired where one meaning is left, and answered where it cannot be done."""

from .fault_text import Problem
from .feedback import tool_error, unknown_tool
from .judge import Invalid, Repaired, Valid, Verdict, judge

__all__ = ["Invalid", "Problem", "Repaired", "Valid", "Verdict", "judge", "tool_error", "unknown_tool"]
