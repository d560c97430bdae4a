"""One request and its answer, whichever HTTP carries them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from .....types import JsonObject


class Hungup(Exception):
    """The client is gone."""


class Exchange(ABC):
    """status is 0 until the answer has started."""

    version: str
    method: str
    path: str
    headers: dict[str, str]
    status = 0

    @abstractmethod
    async def read(self) -> bytes:
        """The next piece of the body; b"" when the client has said all it will. Raises Hungup."""

    @abstractmethod
    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        """is_last: there is no body."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Raises Hungup."""

    @abstractmethod
    async def finish(self) -> None: ...

    @abstractmethod
    async def cut(self, how: str) -> None:
        """End it badly: drop, reset or goaway."""

    async def body(self) -> bytes:
        pieces = []
        while piece := await self.read():
            pieces.append(piece)
        return b"".join(pieces)

    async def answer(self, status: int, content_type: str, body: bytes) -> None:
        """A whole answer at once."""
        await self.start(status, {"content-type": content_type, "content-length": str(len(body))}, is_last=not body)
        if body:
            await self.write(body)
            await self.finish()

    async def answer_json(self, status: int, value: JsonObject) -> None:
        await self.answer(status, "application/json", json.dumps(value).encode())


Handler: TypeAlias = Callable[[Exchange], Awaitable[None]]
