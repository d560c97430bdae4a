"""Messages of the service as JSON, for the trace: members that are set, by the names that the protocol has."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, Message

from ....types import Json, JsonObject
from . import agent


def client_message(data: bytes) -> tuple[str, JsonObject | None]:
    """Which AgentClientMessage it is, and what it has."""
    return _read(agent.AgentClientMessage, data)


def server_message(data: bytes) -> tuple[str, JsonObject | None]:
    """Which AgentServerMessage it is, and what it has."""
    return _read(agent.AgentServerMessage, data)


def as_json(message: Message) -> JsonObject:
    """Bytes as the text that they mostly are, so that secrets in them are found."""
    return {field.name: _value(value) for field, value in message.ListFields()}


def _read(kind: Any, data: bytes) -> tuple[str, JsonObject | None]:
    try:
        message = kind.FromString(data)
    except DecodeError:
        return "something that is no message", None
    return str(message.WhichOneof("message") or "an empty message"), as_json(message)


def _value(value: Any) -> Json:
    if isinstance(value, Message):
        return as_json(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str | int | float | bool):
        return value
    if hasattr(value, "items"):
        return {str(key): _value(item) for key, item in value.items()}
    return [_value(item) for item in value]
