"""Traces the messages of a run, as JSON with the field names of the protocol."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError, Message

from ....telemetry import wire_trace
from ....types import Json, JsonObject
from ....wire.connect import ConnectEnd, ConnectFrame
from ..wire import agent
from .channel import RunChannel


def traced(channel: RunChannel, backend: str, first: bytes) -> RunChannel:
    """The channel itself while the trace is off. first: the message that opened the run."""
    return TracedChannel(channel, backend, first) if wire_trace.active else channel


class TracedChannel:
    """Received messages are recorded with the request that opened the run."""

    def __init__(self, channel: RunChannel, backend: str, first: bytes) -> None:
        self._channel = channel
        self._backend = backend
        self._request = wire_trace.request_id()
        self._sent(first)

    @property
    def how(self) -> str:
        return self._channel.how

    async def send(self, message: bytes) -> None:
        self._sent(message)
        await self._channel.send(message)

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        found = await self._channel.receive()
        for item in found:
            self._received(item)
        return found

    def abort(self) -> None:
        self._channel.abort()

    async def close(self) -> None:
        await self._channel.close()

    def _sent(self, message: bytes) -> None:
        kind, value = client_message(message)
        wire_trace.sent(self._backend, kind, value, size=len(message))

    def _received(self, item: ConnectFrame | ConnectEnd) -> None:
        if isinstance(item, ConnectEnd):
            fault: JsonObject = {} if item.fault is None else {"code": item.fault.code, "message": item.fault.message}
            wire_trace.received(self._backend, "end", fault, size=0, request=self._request)
            return
        kind, value = server_message(item.data)
        wire_trace.received(self._backend, kind, value, size=len(item.data), request=self._request)


def client_message(data: bytes) -> tuple[str, JsonObject | None]:
    """The kind of an AgentClientMessage, and its fields."""
    return _read(agent.AgentClientMessage, data)


def server_message(data: bytes) -> tuple[str, JsonObject | None]:
    """The kind of an AgentServerMessage, and its fields."""
    return _read(agent.AgentServerMessage, data)


def as_json(message: Message) -> JsonObject:
    """Bytes become text, so that secrets in them are found."""
    return {field.name: _value(value) for field, value in message.ListFields()}


def _read(kind: Any, data: bytes) -> tuple[str, JsonObject | None]:
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
