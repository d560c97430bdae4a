"""Messages of the service for tests, one function each, and a decoder for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from tests.backends.cursor.wire.client_tools import fits
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.decoder import RunDecoder
from toolwire.backends.cursor.wire.exec_routing import RunContext
from toolwire.backends.cursor.wire.names import WireNames
from toolwire.backends.cursor.wire.request import RunOpening
from toolwire.backends.cursor.wire.values import to_value
from toolwire.events import Event, Failed, Finished, Noted, PartEnded
from toolwire.types import Reasoning, Text, Tool, ToolCall, ToolResult

WEATHER = Tool(name="weather", schema={"type": "object", "properties": {"city": {"type": "string"}}})
BASH = Tool(
    name="bash", schema={"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
)


def opening(tools: Sequence[Tool] = (WEATHER,), blobs: dict[bytes, bytes] | None = None) -> RunOpening:
    names = WireNames.of(tools)
    definitions = [agent.McpToolDefinition(name=names.wire(tool.name), provider_identifier="tw") for tool in tools]
    context = agent.RequestContext(tools=definitions)
    return RunOpening(message=b"", context=context, blobs=blobs or {}, names=names, tools=tuple(tools), losses=())


def decoder(tools: Sequence[Tool] = (WEATHER,), blobs: dict[bytes, bytes] | None = None, **changes: Any) -> RunDecoder:
    numbers = count(1)
    mint = lambda: f"made_{next(numbers)}"  # noqa: E731 # one line says it
    return RunDecoder(RunContext(model="m", opening=opening(tools, blobs), new_call_id=mint, fits=fits, **changes))


def update(**members: Any) -> bytes:
    return message(interaction_update=agent.InteractionUpdate(**members))


def message(**members: Any) -> bytes:
    return agent.AgentServerMessage(**members).SerializeToString()


def text(words: str, *, is_notice: bool = False) -> bytes:
    return update(text_delta=agent.TextDeltaUpdate(text=words, is_server_notice=is_notice))


def thinking(words: str) -> bytes:
    return update(thinking_delta=agent.ThinkingDeltaUpdate(text=words))


def thought() -> bytes:
    return update(thinking_completed=agent.ThinkingCompletedUpdate())


def tokens(number: int) -> bytes:
    return update(token_delta=agent.TokenDeltaUpdate(tokens=number))


def heartbeat() -> bytes:
    return update(heartbeat=agent.HeartbeatUpdate())


def announced(call_id: str) -> bytes:
    return update(tool_call_started=agent.ToolCallStartedUpdate(call_id=call_id))


def completed(call_id: str) -> bytes:
    return update(tool_call_completed=agent.ToolCallCompletedUpdate(call_id=call_id))


def turn_ended(**counts: int) -> bytes:
    return update(turn_ended=agent.TurnEndedUpdate(**counts))


def checkpoint(used: int, limit: int = 200_000) -> bytes:
    details = agent.ConversationTokenDetails(used_tokens=used, max_tokens=limit)
    return message(conversation_checkpoint_update=agent.ConversationStateStructure(token_details=details))


def exec(number: int, exec_id: str = "", **args: Any) -> bytes:
    return message(exec_server_message=agent.ExecServerMessage(id=number, exec_id=exec_id or f"exec{number}", **args))


def call(number: int, call_id: str = "", name: str = "weather", **arguments: Any) -> bytes:
    values = {key: to_value(value) for key, value in arguments.items()}
    args = agent.McpArgs(name=f"mcp_tw_{name}", tool_name=name, tool_call_id=call_id or f"call{number}", args=values)
    return exec(number, mcp_args=args)


def abort(number: int) -> bytes:
    return message(exec_server_control_message=agent.ExecServerControlMessage(abort=agent.ExecServerAbort(id=number)))


def get_blob(number: int, blob_id: bytes) -> bytes:
    return message(kv_server_message=agent.KvServerMessage(id=number, get_blob_args=agent.GetBlobArgs(blob_id=blob_id)))


def set_blob(number: int, blob_id: bytes, data: bytes) -> bytes:
    args = agent.SetBlobArgs(blob_id=blob_id, blob_data=data)
    return message(kv_server_message=agent.KvServerMessage(id=number, set_blob_args=args))


def query(number: int, **members: Any) -> bytes:
    return message(interaction_query=agent.InteractionQuery(id=number, **members))


def result(call_id: str, words: str = "sunny", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=words),), is_error=is_error)


def results(*ids: str) -> dict[str, ToolResult]:
    return {call_id: result(call_id) for call_id in ids}


def read(data: bytes) -> agent.AgentClientMessage:
    return agent.AgentClientMessage.FromString(data)


def lines_of(events: Sequence[Event]) -> list[str]:
    """Whole parts and what ends them, one line each."""
    lines: list[str] = []
    for event in events:
        match event:
            case PartEnded(part=Text(text=words)):
                lines.append(f"text {words}")
            case PartEnded(part=Reasoning(text=words)):
                lines.append(f"thought {words}")
            case PartEnded(part=ToolCall() as made):
                lines.append(f"call {made.id} {made.name} {made.raw}")
            case Noted(note=note):
                lines.append(f"noted {getattr(note, 'feature', '')}")
            case Finished(choices=choices):
                lines.append(choices[0].reason)
            case Failed(error=error):
                lines.append(f"failed {error.code}")
    return lines
