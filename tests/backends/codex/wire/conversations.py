"""Messages for tests of requests to Codex."""

from __future__ import annotations

from toolwire.types import (
    Media,
    Message,
    Part,
    Request,
    Role,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


IMAGE = Media(kind="image", mime="image/png", data=PNG)


def message(role: Role, *parts: Part | str) -> Message:
    return Message(role=role, parts=tuple(Text(text=part) if isinstance(part, str) else part for part in parts))


def request(*messages: Message, tools: tuple[Tool, ...] = ()) -> Request:
    return Request(model="m", messages=messages, tools=tools)


CALL = ToolCall(id="call_x1", name="get_weather", raw='{"city":"Paris"}', args={"city": "Paris"})


RESULT = ToolResult(call_id="call_x1", parts=(Text(text="sunny"),))


WEATHER = (
    message("user", "weather in Paris? SC=dyn"),
    message("assistant", "Let me check.", CALL),
    message("tool", RESULT),
)
