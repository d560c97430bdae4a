"""The connection of a run, whichever transport carries it.

retryable of an error considers only the connection: a retry is correct only if no output of the model was seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from google.protobuf.message import DecodeError, Message

from ....errors import UpstreamError
from ....telemetry import wire_trace
from ....types import Json, JsonObject
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectEnd, ConnectFrame
from ..wire import agent


class RunChannel(ABC):
    """One run. Any number of tasks may send, one at a time receives. how: the transport, "run" or "sse"."""

    how = ""

    def __init__(self, backend: str) -> None:
        self._decoder = ConnectDecoder()
        self._trace = RunTrace(backend) if wire_trace.active else None

    @abstractmethod
    async def write(self, message: bytes) -> None:
        """Sends one message, as send() does."""

    @abstractmethod
    async def read(self) -> bytes:
        """The next bytes of the reply, b"" at its end. Raises UpstreamError. Cancelling loses nothing."""

    @abstractmethod
    def fail(self, error: UpstreamError) -> None:
        """Close at once. Only the first error counts."""

    async def send(self, message: bytes) -> None:
        """One AgentClientMessage, in the order of the calls.

        Raises UpstreamError only if receive() has nothing more: messages that the service sent before it closed come first, and a
        message that it no longer accepts is dropped. Cancelling in the middle of a message may end the run.
        """
        if self._trace is not None:
            self._trace.sent(message)
        await self.write(message)

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        """Everything that has come, waiting for at least one item. Raises UpstreamError, also after the end. Cancelling loses nothing."""
        while not self._decoder.is_ended:
            data = await self.read()
            try:
                items: list[ConnectFrame | ConnectEnd] = self._decoder.feed(data) if data else [*self._decoder.close()]
            except BadConnectStream as broken:
                self.fail(bad_stream(broken))
                raise bad_stream(broken) from None
            if self._trace is not None:
                for item in items:
                    self._trace.received(item)
            if items:
                return items
        raise run_ended()

    def abort(self) -> None:
        """Close at once. Safe to call twice, from anywhere in the loop."""
        self.fail(UpstreamError("the run was closed on this side.", status=502, code="upstream_cut"))

    async def close(self) -> None:
        """Close, and wait until all tasks have ended. Safe to call twice."""
        self.abort()


def run_ended() -> UpstreamError:
    return UpstreamError("the run has ended; there is nothing more to receive.", status=502, code="upstream_cut")


def bad_stream(fault: BadConnectStream) -> UpstreamError:
    return UpstreamError(
        f"the answer is no Connect stream: {fault}",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy may also have changed the answer.",
    )


class RunTrace:
    """Traces messages as JSON with the field names of the protocol. Received ones are recorded with the request that opened the run."""

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
