"""The model of the tests: it follows the script in its prompt, using only the tools and results that it finds there.

It stores nothing. Its position follows from the results of calls; a result that rejects a call means another attempt. It reports in
capitals if a tool is not offered, its arguments are invalid, or an earlier call changed.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any, NamedTuple

import jsonschema

from tests.programs.simulated.manners import Wish, Written

_SCRIPT = re.compile(r"\[\[script:([A-Za-z0-9+/=]+)\]\]")
_QUOTED = re.compile(r"\{\{result:(\d+)(?::((?:[^{}]|\{[^{}]{0,20}\})+))?\}\}")
_REFUSALS = ("invalid_arguments", "unknown_tool", "unreadable_call", "call_required", "call_not_allowed")


class Past(NamedTuple):
    """A call in the prompt, and its result."""

    name: str
    arguments: Any
    result: str

    @property
    def is_refused(self) -> bool:
        """The call was not made: its result is an error of the gateway."""
        try:
            told = json.loads(self.result)
        except ValueError:
            return False
        return isinstance(told, dict) and told.get("error") in _REFUSALS


class Prompt(NamedTuple):
    """The model's input: its task, schemas by tool name, and the history."""

    script: str
    tools: dict[str, dict[str, Any]]
    past: list[Past]


class Answer(NamedTuple):
    text: str
    step: int = -1
    attempt: int = 0


def script_in(text: str) -> str:
    found = _SCRIPT.search(text)
    return base64.b64decode(found[1]).decode() if found else ""


def answer(prompt: Prompt, written: Written) -> Answer:
    if not prompt.script or not prompt.tools:
        return Answer("A file and a word")  # programs also send requests for titles and similar
    made = [past for past in prompt.past if not past.is_refused]
    step, turn, told = _place(json.loads(prompt.script)["turns"], len(made))
    attempt = sum(past.is_refused for past in prompt.past[len(prompt.past) - _refused_at_end(prompt.past) :])
    if fault := _altered(prompt, told, made):
        return Answer(fault, step, attempt)
    wishes = []
    for call in turn.get("calls", []):
        wish = _wish(prompt.tools, call, made)
        if isinstance(wish, str):
            return Answer(wish, step, attempt)
        wishes.append(wish._replace(step=step, attempt=attempt))
    text = _filled(turn.get("text", ""), made)
    return Answer(written(text, wishes) if wishes else text, step, attempt)


def _refused_at_end(past: list[Past]) -> int:
    count = 0
    while count < len(past) and past[-1 - count].is_refused:
        count += 1
    return count


def _place(turns: list[dict[str, Any]], made: int) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """The number of the next turn, the turn, and the calls of those before it."""
    told: list[dict[str, Any]] = []
    for step, turn in enumerate(turns):
        if len(told) >= made:
            return step, turn, told
        told += turn.get("calls", [])
    return len(turns) - 1, turns[-1], told


def _altered(prompt: Prompt, told: list[dict[str, Any]], made: list[Past]) -> str:
    """Each call must be in the prompt unchanged."""
    if len(told) != len(made):
        return f"HISTORY-ALTERED: {len(made)} calls were made, expected {len(told)}"
    for call, past in zip(told, made, strict=True):
        wish = _wish(prompt.tools, call, made)
        if isinstance(wish, Wish) and (wish.name, wish.arguments) != (past.name, past.arguments):
            return f"HISTORY-ALTERED: {past.name} {past.arguments}, expected {wish.name} {wish.arguments}"
    return ""


def _wish(tools: dict[str, dict[str, Any]], call: dict[str, Any], made: list[Past]) -> Wish | str:
    name = _offered(tools, call["name"])
    if name is None:
        return f"TOOL-NOT-OFFERED: {call['name']}; offered: {', '.join(tools) or 'none'}"
    asked = {"input": call["input"]} if "input" in call else call.get("arguments", {})
    arguments = {key: _filled(value, made) if isinstance(value, str) else value for key, value in asked.items()}
    faults = [fault.message for fault in jsonschema.Draft202012Validator(tools[name]).iter_errors(arguments)]
    return f"ARGUMENTS-DO-NOT-FIT: {name}: {faults[0]}" if faults else Wish(name, arguments)


def _offered(tools: dict[str, dict[str, Any]], name: str) -> str | None:
    """A script writes server.look where a prompt may have server__look, or only look."""
    spellings = (name, name.replace(".", "__"), name.replace(".", "_"), name.rpartition(".")[2])
    return next((spelling for spelling in spellings if spelling in tools), None)


def _filled(text: str, made: list[Past]) -> str:
    return _QUOTED.sub(lambda found: _quoted(made, int(found[1]), found[2]), text)


def _quoted(made: list[Past], number: int, pattern: str | None) -> str:
    if number >= len(made):
        return f"RESULT-{number}-IS-MISSING"
    found = re.search(pattern or r"(?s).*", made[number].result)
    return found[0] if found else f"NOT-IN-RESULT-{number}"
