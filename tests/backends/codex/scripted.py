"""A channel without anybody at its other end: a test says what comes, and sees what was sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class Scripted:
    """is_deaf: what is sent is not taken."""

    pid = 0

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_deaf = False
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, data: bytes) -> None:
        self._coming.put_nowait(data)

    def tell(self, **message: Any) -> None:
        self.say(json.dumps(message).encode() + b"\n")

    async def heard(self) -> dict[str, Any]:
        """What was sent last, once there is something."""
        async with asyncio.timeout(5):
            while not self.sent:
                await asyncio.sleep(0)
        return self.sent[-1]

    async def send(self, line: bytes) -> None:
        if self.is_deaf:
            await asyncio.Event().wait()
        self.sent.append(json.loads(line))

    async def receive(self) -> bytes:
        return await self._coming.get()

    def exit_reason(self) -> str:
        return "it has ended."

    def skipped_tools(self) -> frozenset[str]:
        return frozenset()

    def last_output(self) -> str:
        return ""

    async def close(self) -> None:
        self.say(b"")
