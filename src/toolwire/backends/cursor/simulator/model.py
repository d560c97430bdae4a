"""Back ends of toolwire as models of the simulator: the demo model for people, the scripted one for tests of real clients.

A back end that answers in events gives one answer; its calls are sent to the client, and the results are added to the conversation
before the next answer. So a parked run and a new run with the whole history behave alike.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from typing import Any

from ....errors import GatewayError
from ....events import Folder
from ....types import JsonObject, Media, Message, Part, Reasoning, Request, Text, Tool, ToolCall, ToolResult
from ...base import Backend, EventReply
from ...demo.backend import Demo
from ...scripted.backend import Scripted
from ..wire.names import PREFIX
from . import script

_MARK = "[[script:"


class BackendModel:
    """A back end as the model. It sees names of tools without the prefix that names of built-in tools get."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def start(self, seen: script.Seen) -> AsyncGenerator[script.Step, list[script.ClientResult]]:
        names = {tool.name.removeprefix(PREFIX): tool.name for tool in seen.tools}
        messages = [_message(message) for message in seen.messages]
        tools = tuple(
            Tool(name=tool.name.removeprefix(PREFIX), description=tool.description, schema=tool.schema)
            for tool in seen.tools
        )
        while True:
            request = Request(model=seen.model, messages=tuple(messages), tools=tools, stream=True)
            folder = Folder()
            try:
                await _read_answer(self._backend, request, folder)
                answer = folder.answer()
            except GatewayError as error:
                yield script.Fail(code="internal", message=error.sentence())
                return
            parts = answer.parts_of(0)
            for part in parts:
                if isinstance(part, Text) and part.text:
                    yield script.Say(part.text)
                elif isinstance(part, Reasoning) and part.text:
                    yield script.Think(part.text)
            calls = [part for part in parts if isinstance(part, ToolCall)]
            messages.append(Message(role="assistant", parts=parts))
            if not calls:
                break
            results = yield script.MakeCalls(
                tuple(script.MakeCall(names.get(call.name, call.name), call.args or {}, call.id) for call in calls)
            )
            paired = zip(calls, results, strict=True)
            messages.append(Message(role="tool", parts=tuple(_tool_result(call, result) for call, result in paired)))
        usage = answer.finished.usage
        if usage is not None:
            yield script.EndTurn(
                script.TurnUsage(usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning)
            )


def demo() -> BackendModel:
    """Picks a tool by the prompt, calls it with plausible arguments, and reports its result."""
    return BackendModel(Demo())


def prompted() -> BackendModel:
    """Plays a script in the prompt, [[script:BASE64]], like the scripted back end."""
    return BackendModel(Scripted("simulator"))


class DefaultModel:
    """The script in the prompt if there is one, else the demo model."""

    def start(self, seen: script.Seen) -> AsyncGenerator[script.Step, list[script.ClientResult]]:
        texts = [str(part.get("text", "")) for message in seen.messages for part in script.parts_of(message)]
        return (prompted() if any(_MARK in text for text in texts) else demo()).start(seen)


def _message(message: JsonObject) -> Message:
    return Message(role=message["role"], parts=tuple(_part(part) for part in script.parts_of(message)))


def _part(part: JsonObject) -> Part:
    match part.get("type"):
        case "tool-call":
            args = part["args"]
            name = part["toolName"].removeprefix(PREFIX)
            return ToolCall(id=part["toolCallId"], name=name, raw=json.dumps(args, ensure_ascii=False), args=args)
        case "tool-result":
            text = Text(text=script.result_text(part["result"]))
            return ToolResult(call_id=part["toolCallId"], parts=(text,), is_error=bool(part.get("isError")))
        case "reasoning" | "redacted-reasoning":
            return Reasoning(text=str(part.get("text", "")))
        case "image":
            return _picture(part)
        case _:
            return Text(text=str(part.get("text", "")))


async def _read_answer(backend: Backend, request: Request, folder: Folder) -> None:
    reply: Any = await backend.open(request, is_verbatim=False)
    if not isinstance(reply, EventReply):
        raise GatewayError("this back end does not answer in events")
    async for batch in reply.events:
        for event in batch:
            folder.send(event)


def _tool_result(call: ToolCall, result: script.ClientResult) -> ToolResult:
    images = [Media(kind="image", mime=mime, data=base64.b64encode(data).decode()) for mime, data in result.images]
    return ToolResult(
        call_id=call.id, parts=(Text(text=result.text), *images), is_error=result.is_error, name=call.name
    )


def _picture(part: JsonObject) -> Media:
    data = str(part.get("image", "")).partition("base64,")[2]
    return Media(kind="image", mime=str(part.get("mediaType", "")), data=data)
