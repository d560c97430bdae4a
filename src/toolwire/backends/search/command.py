"""A program as a search engine: it gets the query as its only argument and prints one JSON object per line."""

from __future__ import annotations

import asyncio
import contextlib

from ...dialects.shared.web_search import SearchHit
from ...errors import UpstreamError
from ...subprocesses import kill_group, start
from ...wire.exact_json import object_of
from .searcher import hit_in

_MAX_OUTPUT = 1 << 20
_PIECE = 1 << 16
_LAST_BYTES = 1.0


class CommandSearch:
    def __init__(self, program: str) -> None:
        self._program = program

    async def find(self, query: str, count: int) -> list[SearchHit]:
        """Runs without a shell; a query never begins like an option."""
        try:
            nothing = asyncio.subprocess.DEVNULL
            process = await start(self._program, query.lstrip("- ") or " ", stdin=nothing, stderr=nothing)
        except OSError as fault:
            raise UpstreamError(f"the search program cannot be run: {fault.strerror}.", code="search_failed") from None
        try:
            output = await _output_of(process)
        finally:
            await _end(process)
        return _hits_in(output)[:count]


async def _output_of(process: asyncio.subprocess.Process) -> bytes:
    """What it prints up to the bound; past that it is stopped, and its last line is not whole."""
    assert process.stdout is not None
    pieces, size = list[bytes](), 0
    while piece := await process.stdout.read(_PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > _MAX_OUTPUT:
            return b"".join(pieces)[:_MAX_OUTPUT].rpartition(b"\n")[0]
    if code := await process.wait():
        raise UpstreamError(f"the search program ended with status {code}.", code="search_failed")
    return b"".join(pieces)


async def _end(process: asyncio.subprocess.Process) -> None:
    """With whatever it has started; what it has printed since is read, because only then its pipe is closed."""
    kill_group(process)
    if process.returncode is not None:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES):
            while process.stdout is not None and await process.stdout.read(_PIECE):
                pass
            await process.wait()


def _hits_in(output: bytes) -> list[SearchHit]:
    lines = output.decode("utf-8", "replace").splitlines()
    return [hit for line in lines if (hit := hit_in(object_of(line), "snippet")) is not None]
