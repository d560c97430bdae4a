"""Parses a prompt: tools with their schemas, calls, and results.

A model without tools has only text: schemas are JSON in its instructions, calls are blocks in its own texts, results are blocks in user
texts. For a model with tools they are in the members of the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.programs.simulated.model import Past, Prompt, script_in
from tests.programs.simulated.wires import PromptMessage, Refused

_CALL = re.compile(r"^<tool_call>\n(.*?)\n</tool_call>$", re.MULTILINE | re.DOTALL)
_RESULT = re.compile(r"^<tool_result>(.*)</tool_result>$", re.MULTILINE)


def written_prompt(said: list[PromptMessage]) -> Prompt:
    instructions = "\n".join(message.text for message in said if message.role in ("system", "developer"))
    asked = "\n".join(message.text for message in said if message.role == "user")
    return Prompt(script_in(asked), dict(_schemas(instructions)), list(_written_past(said)))


def _schemas(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """A tool is a line of JSON with a name and parameters."""
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value.get("name"), str) and isinstance(value.get("parameters"), dict):
            yield value["name"], value["parameters"]


def _written_past(said: list[PromptMessage]) -> Iterator[Past]:
    """Results name the call of the previous turn that they answer; a turn is the model's output since the last user message."""
    turn: list[str] = []
    is_instructed = True
    for message in said:
        if message.role == "assistant":
            turn = [] if is_instructed else turn
            turn += _CALL.findall(message.text)
            is_instructed = False
        elif message.role == "user" and not is_instructed:
            yield from _answered(turn, [json.loads(found) for found in _RESULT.findall(message.text)])
            is_instructed = True


def _answered(turn: list[str], results: list[dict[str, Any]]) -> Iterator[Past]:
    by_number = {result["call"]: result for result in results}
    if len(by_number) != len(results) or sorted(by_number) != list(range(1, len(turn) + 1)):
        raise Refused(f"results for calls {[result['call'] for result in results]}, where {len(turn)} were made")
    for number, block in enumerate(turn, start=1):
        call, result = json.loads(block), by_number[number]
        if result["name"] != call["name"]:
            raise Refused(f"a result of {result['name']} for a call of {call['name']}")
        yield Past(call["name"], call["arguments"], result["output"])


def offered_prompt(request: dict[str, Any]) -> Prompt:
    """Chat Completions with native tools."""
    tools = [tool["function"] for tool in request.get("tools") or []]
    messages = request["messages"]
    asked = json.dumps([message["content"] for message in messages if message["role"] == "user"])
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    past = [
        Past(call["function"]["name"], json.loads(call["function"]["arguments"]), results[call["id"]])
        for message in messages
        for call in message.get("tool_calls") or []
    ]
    return Prompt(script_in(asked), {tool["name"]: tool["parameters"] for tool in tools}, past)
