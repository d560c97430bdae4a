"""Traces the messages of a run, as JSON with the field names of the protocol."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, Message

from ....telemetry import wire_trace
from ....types import Json, JsonObject
from ....wire.connect import ConnectEnd, ConnectFrame
from ..wire import agent


class RunTrace:
    """Received messages are recorded with the request that opened the run."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._request = wire_trace.request_id()

    def sent(self, message: bytes) -> None:
        kind, value = read_message(agent.AgentClientMessage, message)
        wire_trace.sent(self._backend, kind, value, size=len(message))

    def received(self, item: ConnectFrame | ConnectEnd) -> None:
        kind, size = "end", 0
        value: JsonObject | None = {}
        if isinstance(item, ConnectFrame):
            (kind, value), size = read_message(agent.AgentServerMessage, item.data), len(item.data)
        elif item.fault is not None:
            value = {"code": item.fault.code, "message": item.fault.message}
        wire_trace.received(self._backend, kind, value, size=size, request=self._request)


def as_json(message: Message) -> JsonObject:
    """Bytes become text, so that secrets in them are found."""
    return {field.name: _value(value) for field, value in message.ListFields()}


def read_message(kind: Any, data: bytes) -> tuple[str, JsonObject | None]:
    """The kind of a message, and its fields."""
    try:
        message = kind.FromString(data)
    except DecodeError:
        return "an invalid message", None
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
