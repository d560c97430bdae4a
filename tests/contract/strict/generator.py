"""Broken histories by number: equal numbers give equal requests, in the dialect of the client."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any, NamedTuple

from tests.contract.strict.conversation import TOOLS, Item, Talk
from tests.contract.strict.damage import WAYS
from tests.contract.strict.encoders import Chat, Gemini, Messages, Responses

DIALECTS = ("chat", "responses", "messages", "gemini")
_MARKS = re.compile(r"wd\d+q")
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_TYPED: dict[str, dict[str, Any]] = {
    "local_shell": {"type": "local_shell"},
    "shell": {"type": "shell"},
    "apply_patch": {"type": "apply_patch"},
    "computer": {"type": "computer_use_preview", "display_width": 10, "display_height": 10, "environment": "linux"},
    "tool_search": {"type": "tool_search", "execution": "client"},
}


class Case(NamedTuple):
    number: int
    client: str
    ways: tuple[str, ...]
    body: dict[str, Any]

    @property
    def words(self) -> set[str]:
        """The marks in all texts, calls and results."""
        return marks_in(json.dumps(self.body))


def marks_in(text: str) -> set[str]:
    return set(_MARKS.findall(text))


def case(number: int, *, is_broken: bool = True) -> Case:
    random = Random(number)
    client = DIALECTS[number % len(DIALECTS)]
    asks = _Asked(random.random() < 0.3, not is_broken or random.random() < 0.8, 0.0)
    talk = Talk(random, client, 1.0 if asks.is_thinking else 0.4)
    items = talk.conversation()
    ways: list[str] = []
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4)) if is_broken else 0):
        ways.append(random.choice(list(WAYS)))
        items = WAYS[ways[-1]](talk, items) or items
    if is_broken and random.random() < 0.1:
        ways.append("parted")
        asks = asks._replace(parting=0.2)
    write = {"chat": _chat, "responses": _responses, "messages": _messages, "gemini": _gemini}[client]
    body = write(random, items, asks)
    return Case(number, client, tuple(ways), {"model": "m", **body})


class _Asked(NamedTuple):
    """The request settings beside the conversation; parting: the probability that a message is split."""

    is_thinking: bool
    has_tools: bool
    parting: float


def _chat(random: Random, items: list[Item], asked: _Asked) -> dict[str, Any]:
    body: dict[str, Any] = {"messages": Chat(random, asked.parting).messages(items)}
    if asked.is_thinking:
        body["reasoning_effort"] = random.choice(("low", "medium", "none"))
    if asked.has_tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "description": name, "parameters": _SCHEMA}}
            for name in TOOLS
        ]
        if random.random() < 0.2:
            named = {"type": "function", "function": {"name": random.choice(TOOLS)}}
            body["tool_choice"] = random.choice(("auto", "required", "none", named))
            body["parallel_tool_calls"] = False
    return body


def _responses(random: Random, items: list[Item], asked: _Asked) -> dict[str, Any]:
    is_stored = random.random() < 0.3
    body: dict[str, Any] = {"input": Responses(random, has_ids=random.random() < 0.7).items(items), "store": is_stored}
    if not is_stored:
        body["include"] = ["reasoning.encrypted_content"]
    if asked.is_thinking or any(item.item_id.partition("_")[2].startswith("r") for item in items):
        body["reasoning"] = {"effort": random.choice(("low", "high"))}
    if asked.has_tools:
        body["tools"] = [{"type": "function", "name": name, "parameters": _SCHEMA, "strict": False} for name in TOOLS]
        forms = {item.form for item in items if item.kind == "call"}
        body["tools"] += [tool for form, tool in _TYPED.items() if form in forms]
        if random.random() < 0.2:
            named = {"type": "function", "name": random.choice(TOOLS)}
            body["tool_choice"] = random.choice(("auto", "required", "none", named))
    return body


def _messages(random: Random, items: list[Item], asked: _Asked) -> dict[str, Any]:
    writer = Messages(random, asked.parting)
    body: dict[str, Any] = {"max_tokens": 8192, "messages": writer.messages(items)}
    if system := writer.system(items):
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if asked.is_thinking:
        body["thinking"] = {"type": "enabled", "budget_tokens": 2048}
    if asked.has_tools:
        body["tools"] = [{"name": name, "description": name, "input_schema": _SCHEMA} for name in TOOLS]
        if random.random() < 0.2:
            forced = () if asked.is_thinking else ({"type": "any"}, {"type": "tool", "name": random.choice(TOOLS)})
            body["tool_choice"] = random.choice(({"type": "auto"}, {"type": "none"}, *forced))
    return body


def _gemini(random: Random, items: list[Item], asked: _Asked) -> dict[str, Any]:
    body: dict[str, Any] = {"contents": Gemini(random, asked.parting).contents(items)}
    if system := Messages(random, 0.0).system(items):
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if asked.is_thinking:
        body["generationConfig"] = {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2048}}
    if asked.has_tools:
        declared = [{"name": name, "description": name, "parametersJsonSchema": _SCHEMA} for name in TOOLS]
        body["tools"] = [{"functionDeclarations": declared}]
        if random.random() < 0.2:
            named = {"mode": "ANY", "allowedFunctionNames": [random.choice(TOOLS)]}
            body["toolConfig"] = {
                "functionCallingConfig": random.choice(({"mode": "AUTO"}, {"mode": "ANY"}, {"mode": "NONE"}, named))
            }
    return body
