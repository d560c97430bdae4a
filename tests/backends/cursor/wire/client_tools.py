"""The tools of real clients, as they send them, and execs that are mapped to them.

client_tools.json: recorded from OpenCode 1.18.33, Claude Code 2.1.325 and Codex 0.166.0, descriptions shortened.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.builtin_tools.mapper import MappedCall, map_exec
from toolwire.backends.cursor.wire.builtin_tools.results import KnownFiles
from toolwire.backends.cursor.wire.execs import Exec
from toolwire.calls.schemas import Schemas
from toolwire.types import JsonObject, Media, Text, Tool, ToolResult

_RECORDED = json.loads(Path(__file__).with_name("client_tools.json").read_text())


def client(name: str) -> list[Tool]:
    return [Tool(name=tool["name"], schema=tool["schema"]) for tool in _RECORDED[name]]


def tool(name: str, *required: str, description: str = "", **properties: JsonObject) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name=name, schema=schema, description=description)


TEXT: JsonObject = {"type": "string"}
TEXTS: JsonObject = {"type": "array", "items": TEXT}
BASH = tool("bash", "command", command=TEXT)


_SCHEMAS = Schemas()


def fits(tool: Tool, arguments: JsonObject) -> bool:
    checker = _SCHEMAS.of(tool.schema).checker
    return checker is not None and checker.fits(arguments, 1000)


def map_to_client(kind: str, args: Any, tools: list[Tool], known: KnownFiles | None = None) -> MappedCall:
    found = map_exec(Exec(3, "three", kind, args), tools, fits, known)
    assert found is not None
    return found


def results(call: MappedCall, text: str, *, is_error: bool = False, image: str = "") -> list[Any]:
    """The results that the server gets; the last message must be the close."""
    parts: list[Text | Media] = [Text(text=text)]
    if image:
        parts.append(Media(kind="image", mime="image/png", data=image))
    data = call.answer(ToolResult(call_id="c", parts=tuple(parts), is_error=is_error))
    messages = [agent.AgentClientMessage.FromString(one) for one in data]
    assert messages[-1].exec_client_control_message.stream_close.id == 3
    answers = [message.exec_client_message for message in messages[:-1]]
    assert all((one.id, one.exec_id) == (3, "three") for one in answers)
    return [getattr(one, one.WhichOneof("message")) for one in answers]


def result(call: MappedCall, text: str, *, is_error: bool = False, image: str = "") -> Any:
    (only,) = results(call, text, is_error=is_error, image=image)
    return only
