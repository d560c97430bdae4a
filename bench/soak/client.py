"""A small HTTP client for the soak: keeps its connection where it can, and closes it in mid-answer where it is told to."""

from __future__ import annotations

import asyncio

from .traffic import Job

SECONDS = 30.0


class Client:
    """One at a time, on one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def do(self, job: Job) -> str:
        """What was wrong with the answer; "" if nothing."""
        if job.is_fresh:
            self.close()
        try:
            async with asyncio.timeout(SECONDS):
                return await self._done(job)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            self.close()
            return f"{job.kind}: {type(error).__name__} {error}"

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _done(self, job: Job) -> str:
        reader, writer = await self._connection()
        writer.write(job.wire(self._port))
        if job.leaves_after >= 0:
            await asyncio.sleep(0.02)
            if job.leaves_after:
                await reader.readexactly(job.leaves_after)
            self.close()
            return ""
        status, headers = await _read_head(reader)
        body = await _read_body(reader, headers)
        if headers.get("connection") == "close" or job.is_fresh:
            self.close()
        if status not in job.status:
            return f"{job.kind}: {job.method} {job.path} was answered {status}: {body[:300]!r}"
        if job.then is not None and status == 200:
            job.then(body)
        return ""

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None or self._writer.is_closing() or self._reader.at_eof():
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self._reader, self._writer


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    pieces = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readexactly(2)
    return b"".join(pieces)
