"""The connection of a run, whichever transport carries it.

retryable of an error considers only the connection: a retry is correct only if no output of the model was seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ....errors import UpstreamError
from ....telemetry import wire_trace
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectEnd, ConnectFrame
from .trace import RunTrace


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
