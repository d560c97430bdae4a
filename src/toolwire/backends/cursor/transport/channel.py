"""How messages of one run go out and come back, whatever carries them."""

from __future__ import annotations

from typing import Protocol

from ....errors import UpstreamError
from ....wire.connect import ConnectEnd, ConnectFrame


class Gone(Exception):
    """The run's connection died or was refused; error says why, as the client may hear it.

    error.retryable looks at the connection alone: another try is right only if nothing of the model was seen.
    """

    def __init__(self, error: UpstreamError) -> None:
        super().__init__(error.message)
        self.error = error


class RunChannel(Protocol):
    """One run. Any number of tasks may send, one at a time receives."""

    @property
    def how(self) -> str:
        """What carries it: "run" or "sse"."""

    async def send(self, message: bytes) -> None:
        """One AgentClientMessage, in the order of the calls.

        Raises Gone where receive() has nothing more to tell: what the service said before it left comes first, and a message that
        it did not take any more is dropped. Cancelled in mid-message it may end the run.
        """

    async def receive(self) -> list[ConnectFrame | ConnectEnd]:
        """Whatever has come, waiting if that is nothing. Raises Gone, also after the End; cancelling loses nothing."""

    def abort(self) -> None:
        """Leave at once. Safe to call twice, and from anywhere in the loop."""

    async def close(self) -> None:
        """Leave, and wait until nothing of it is running any more. Safe to call twice."""
