"""Broken conversations in the dialects that only clients use: Ollama, often without ids of calls, and Interactions."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.contract.strict.conversation import TOOLS, Item, Talk
from tests.contract.strict.damage import WAYS
from tests.contract.strict.encoders import PIXEL
from tests.contract.strict.generator import Case

CLIENTS = ("ollama", "interactions")
_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_UNKNOWN = ("use", "outcome", "approval", "permit")  # of hosted tools, which these dialects write otherwise


def front_case(number: int, *, is_broken: bool = True) -> Case:
    random = Random(number)
    client = CLIENTS[number % 2]
    talk = Talk(random, "messages", 0.4)
    items = talk.conversation()
    ways: list[str] = []
    for _ in range(random.choice((1, 1, 2, 3)) if is_broken else 0):
        ways.append(random.choice(list(WAYS)))
        items = WAYS[ways[-1]](talk, items) or items
    items = [item for item in items if item.kind not in _UNKNOWN]
    body = _ollama(random, items) if client == "ollama" else _interaction(items)
    return Case(number, client, tuple(ways), {"model": "m", **body})


def _ollama(random: Random, items: list[Item]) -> dict[str, Any]:
    """ids: some clients return them, some return names, some nothing."""
    ids = random.choice(("ids", "names", "nothing"))
    messages: list[dict[str, Any]] = []
    for item in items:
        if item.kind == "result":
            named = {"ids": {"tool_call_id": item.id}, "names": {"tool_name": item.name}, "nothing": {}}[ids]
            image = {"images": [PIXEL]} if item.has_image else {}
            messages.append({"role": "tool", "content": item.text, **named, **image})
        elif item.kind in ("say", "think", "call"):
            if not messages or messages[-1]["role"] != "assistant" or (item.kind == "say" and messages[-1]["content"]):
                messages.append({"role": "assistant", "content": ""})
            _grow(messages[-1], item, has_id=ids == "ids")
        else:
            role = "system" if item.kind in ("system", "developer") else "user"
            image = {"images": [PIXEL]} if item.has_image and role == "user" else {}
            messages.append({"role": role, "content": item.text, **image})
    tools = [{"type": "function", "function": {"name": name, "parameters": _SCHEMA}} for name in TOOLS]
    return {"messages": messages, "tools": tools, "stream": False}


def _grow(message: dict[str, Any], item: Item, *, has_id: bool) -> None:
    if item.kind == "say":
        message["content"] = item.text
    elif item.kind == "think":
        message["thinking"] = item.text
    else:
        call: dict[str, Any] = {"function": {"name": item.name, "arguments": _object(item.text)}}
        message.setdefault("tool_calls", []).append(call | ({"id": item.id} if has_id else {}))


def _interaction(items: list[Item]) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    system = ""
    for item in items:
        text = {"type": "text", "text": item.text}
        match item.kind:
            case "result":
                image = [{"type": "image", "data": PIXEL, "mime_type": "image/png"}] if item.has_image else []
                result: Any = [text, *image] if image else item.text
                steps.append({"type": "function_result", "call_id": item.id, "name": item.name, "result": result})
            case "call":
                steps.append(
                    {"type": "function_call", "id": item.id, "name": item.name, "arguments": _object(item.text)}
                )
            case "say":
                steps.append({"type": "model_output", "content": [text]})
            case "think":
                steps.append({"type": "thought", "summary": [text]})
            case "system" if not steps and not system:
                system = item.text
            case _:
                steps.append({"type": "user_input", "content": [text]})
    tools = [{"type": "function", "name": name, "parameters": _SCHEMA} for name in TOOLS]
    return {"input": steps, "tools": tools, "store": False, **({"system_instruction": system} if system else {})}


def _object(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return {"input": text} if text else {}
    return value if isinstance(value, dict) else {"value": value}
