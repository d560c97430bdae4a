"""The interface of a run's connection, whichever transport carries it."""

from __future__ import annotations

from typing import Protocol

from ....errors import UpstreamError
from ....wire.connect import BadConnectStream, ConnectEnd, ConnectFrame


class Gone(Exception):
    """The run's connection failed or was refused; error says why, for the client.

    error.retryable considers only the connection: a retry is correct only if no output of the model was seen.
    """

    def __init__(self, error: UpstreamError) -> None:
        super().__init__(error.message)
        self.error = error


class RunChannel(Protocol):
    """One run. Any number of tasks may send, one at a time receives."""

    @property
    def how(self) -> str:
        """The transport: "run" or "sse"."""

    async def send(self, message: bytes) -> None:
        """One AgentClientMessage, in the order of the calls.

        Raises Gone only if receive() has nothing more: messages that the service sent before it closed come first, and a message
        that it no longer accepts is dropped. Cancelling in the middle of a message may end the run.
        """

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        """Everything that has come, waiting for at least one item. Raises Gone, also after the end. Cancelling loses nothing."""

    def abort(self) -> None:
        """Close at once. Safe to call twice, from anywhere in the loop."""

    async def close(self) -> None:
        """Close, and wait until all tasks have ended. Safe to call twice."""


def run_ended() -> UpstreamError:
    return UpstreamError("the run has ended; there is nothing more to receive.", status=502, code="upstream_cut")


def bad_stream(fault: BadConnectStream) -> UpstreamError:
    return UpstreamError(
        f"the answer is no Connect stream: {fault}",
        status=502,
        code="upstream_garbage",
        hint="Check base_url; a proxy may also have changed the answer.",
    )
