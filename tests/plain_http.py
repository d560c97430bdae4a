"""One HTTP request on a connection of its own, with nothing between the program and the bytes."""

from __future__ import annotations

import asyncio
import json
from typing import Any


async def request(port: int, method: str, path: str, key: str, body: Any = None) -> tuple[int, dict[str, str], bytes]:
    """One request on a connection of its own: status, headers, body. Raises OSError or IncompleteReadError if it breaks."""
    data = b"" if body is None else json.dumps(body).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: close\r\n"
        writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if "content-length" in headers:
            return int(lines[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
        pieces = []
        while size := int(await reader.readuntil(b"\r\n"), 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        return int(lines[0].split()[1]), headers, b"".join(pieces)
    finally:
        writer.transport.abort()
