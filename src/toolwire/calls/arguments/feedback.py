"""What a model is told about a call that cannot be made: what is wrong, what came, what to do. Bounded, whatever came."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from ...types import JsonObject, Tool
from ...wire.exact_json import encode
from .fault_text import pruned
from .judge import Invalid
from .property_names import same_name

MAX_BYTES = 6000
_MOST_NAMES = 60
_LONGEST_NAME = 100


def tool_error(tool: Tool, verdict: Invalid) -> JsonObject:
    """For the result of the call, as JSON."""
    errors = [{"path": problem.path, "message": problem.message} for problem in verdict.errors]
    told: JsonObject = {
        "error": "invalid_arguments",
        "tool": tool.name[:_LONGEST_NAME],
        "validation_errors": errors,
        "missing": list(verdict.missing),
        "received": pruned(verdict.received, 200, 4),
        "hint": _hint(tool, verdict),
    }
    return _bounded(told, verdict)


def unknown_tool(name: str, tools: Iterable[Tool]) -> JsonObject:
    """The model called something that nobody offered (H126)."""
    names = [tool.name[:_LONGEST_NAME] for tool in tools if not tool.is_deferred]
    near = near_names(name, names)
    if near:
        hint = f"There is no such tool. Did you mean {' or '.join(near)}? Call it by exactly that name."
    elif names:
        hint = "There is no such tool. Call one of those that are listed, by exactly its name, or answer in words."
    else:
        hint = "There are no tools in this conversation. Answer in words."
    told: JsonObject = {"error": "unknown_tool", "tool": name[:_LONGEST_NAME], "valid_tools": names[:_MOST_NAMES]}
    if near:
        told["near"] = near
    if len(names) > _MOST_NAMES:
        told["more_tools"] = len(names) - _MOST_NAMES
    return {**told, "hint": hint}


def near_names(name: str, names: list[str]) -> list[str]:
    """At most three, the nearest first; spelling and prefixes differ more often than words."""
    plain: dict[str, str] = {}
    for known in names:
        plain.setdefault(same_name(known), known)
    wanted = same_name(name[:_LONGEST_NAME])
    if wanted in plain:
        return [plain[wanted]]
    ends = [known for key, known in plain.items() if len(key) > 3 and (wanted.endswith(key) or key.endswith(wanted))]
    close = [plain[key] for key in get_close_matches(wanted, list(plain)[:500], 3, 0.7)] if wanted else []
    return list(dict.fromkeys([*(ends if wanted else []), *close]))[:3]


def _hint(tool: Tool, verdict: Invalid) -> str:
    name = tool.name[:_LONGEST_NAME]
    if verdict.missing:
        listed = ", ".join(verdict.missing)[:300]
        return f"Call {name} again with a value for: {listed}. The call was not made."
    if not isinstance(verdict.received, dict):
        return f"Call {name} again; its arguments must be one complete JSON object. The call was not made."
    return (
        f"Call {name} again with the arguments at fault corrected, and all others as they were. The call was not made."
    )


def _bounded(told: JsonObject, verdict: Invalid) -> JsonObject:
    """Less of what was received first, then fewer errors; error, tool and hint always stay."""
    for longest, levels, most in ((80, 3, 20), (40, 2, 10), (20, 1, 5), (0, 0, 3)):
        if len(encode(told)) <= MAX_BYTES:
            break
        told = {
            **told,
            "received": pruned(verdict.received, longest, levels),
            "validation_errors": told["validation_errors"][:most],
            "missing": told["missing"][:most],
        }
    return told
