"""How bytes go to an app-server and come back, whatever is in between."""

from __future__ import annotations

from typing import Protocol


class Channel(Protocol):
    """Messages are JSON texts, one a line in both directions."""

    @property
    def pid(self) -> int:
        """Of the process whose memory counts; 0 where it is not ours."""

    async def send(self, line: bytes) -> None:
        """Raises SessionLost where nobody reads on."""

    async def receive(self) -> bytes:
        """Whatever has come, cut anywhere; b"" at the end."""

    def story(self) -> str:
        """Why it ended, as a sentence that every client may read: nothing secret, and nothing of what others asked."""

    def skipped_tools(self) -> frozenset[str]:
        """Names of clients' tools that its log says it did not offer to the model; empty where there is no log to read."""

    def last_words(self) -> str:
        """What it said last, for the owner alone; "" where nothing is known."""

    async def close(self) -> None:
        """It is told to leave, and is gone when this returns. Safe to call twice."""
