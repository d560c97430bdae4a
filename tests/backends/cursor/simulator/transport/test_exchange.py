from __future__ import annotations

import asyncio
from typing import Any

from toolwire.backends.cursor.simulator.transport.exchange import Exchange


class Kept(Exchange):
    """An exchange in memory."""

    version, method, path = "2", "POST", "/"

    def __init__(self, *pieces: bytes) -> None:
        self.headers = {}
        self.pieces = [*pieces, b""]
        self.said: list[Any] = []

    async def read(self) -> bytes:
        return self.pieces.pop(0)

    async def start(self, status: int, headers: dict[str, str], *, is_last: bool = False) -> None:
        self.said.append((status, headers, is_last))

    async def write(self, data: bytes) -> None:
        self.said.append(data)

    async def finish(self) -> None:
        self.said.append("end")

    async def cut(self, how: str) -> None:
        self.said.append(how)


def test_a_body_is_all_pieces_up_to_the_end() -> None:
    assert asyncio.run(Kept(b"a", b"b").body()) == b"ab"


def test_a_whole_answer_says_its_length() -> None:
    exchange = Kept()
    asyncio.run(exchange.answer_json(200, {"a": 1}))
    assert exchange.said == [
        (200, {"content-type": "application/json", "content-length": "8"}, False),
        b'{"a": 1}',
        "end",
    ]


def test_an_empty_answer_ends_at_once() -> None:
    exchange = Kept()
    asyncio.run(exchange.answer(415, "text/plain", b""))
    assert exchange.said == [(415, {"content-type": "text/plain", "content-length": "0"}, True)]
