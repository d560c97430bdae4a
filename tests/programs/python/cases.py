"""What the scripts beside this file share: their task, two tools, and the report of what each case came to.

They run in the Python of the programs, not in that of the tests. The task is a file of JSON named on the command line.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

TASK: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
ADDRESS: str = TASK["address"]
KEY: str = TASK["key"]
MODEL: str = TASK["model"]
_CASES: dict[str, Callable[[str], Any]] = {}


def case(name: str) -> Callable[[Callable[[str], Any]], Callable[[str], Any]]:
    """A function from the prompt to the last text; it may be asynchronous."""

    def keep(function: Callable[[str], Any]) -> Callable[[str], Any]:
        _CASES[name] = function
        return function

    return keep


def read_file(path: str) -> str:
    """Read a file."""
    return Path(path).read_text(encoding="utf-8")


def write_file(path: str, content: str) -> str:
    """Write a file."""
    Path(path).write_text(content, encoding="utf-8")
    return f"wrote {path}"


TOOLS: dict[str, Callable[..., str]] = {"read_file": read_file, "write_file": write_file}
SCHEMAS: dict[str, dict[str, Any]] = {
    name: {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in inspect.signature(tool).parameters},
        "required": list(inspect.signature(tool).parameters),
        "additionalProperties": False,
    }
    for name, tool in TOOLS.items()
}


def call(name: str, arguments: Any) -> str:
    return TOOLS[name](**(json.loads(arguments) if isinstance(arguments, str) else arguments))


def main() -> None:
    """Runs the cases that the task has a prompt for; the others are named as missing."""
    outcomes: dict[str, Any] = {name: {"error": "no such case"} for name in TASK["prompts"] if name not in _CASES}
    for name, function in _CASES.items():
        if name in TASK["prompts"]:
            outcomes[name] = _outcome_of(function, TASK["prompts"][name])
    print(json.dumps(outcomes))


def _outcome_of(function: Callable[[str], Any], prompt: str) -> Any:
    try:
        if inspect.iscoroutinefunction(function):
            return {"text": asyncio.run(function(prompt))}
        return {"text": function(prompt)}
    except Exception:
        return {"error": traceback.format_exc()[-1200:]}
