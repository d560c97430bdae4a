"""The configuration of a program: the file or, without one, the back ends that are found on this machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from urllib.parse import urlsplit

import httptools
import msgspec

from ..config.file import Config, load, with_backends
from .discovery import discover

_MAX_BYTES = 4 * 1024 * 1024


async def found_config(path: Path | None, *, port: int | None = None, is_serving: bool = False) -> Config:
    """port: where this gateway listens, if not the configured one; discovery skips it. is_serving: this process runs the gateway."""
    config = load(path, os.environ)
    if config.path:
        return config
    own_port = port or config.server.port
    return with_backends(config, await discover(os.environ, probe, own_port=own_port, is_serving=is_serving))


async def probe(url: str, key: str = "") -> list[str] | None:
    """The ids of the model list at an http URL, None if there is none. Raises OSError; has no time limit."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        credentials = f"Authorization: Bearer {key}\r\n" if key else ""
        request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{credentials}Connection: close\r\n\r\n"
        writer.write(request.encode("ascii"))
        return _model_ids(await _body(reader))
    finally:
        writer.close()


class _Answer:
    """The callbacks of httptools."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_complete = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _body(reader: asyncio.StreamReader) -> bytes:
    """The body of a 200 response, otherwise empty."""
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    try:
        while not answer.is_complete and len(answer.body) <= _MAX_BYTES:
            data = await reader.read(65536)
            if not data:
                break
            parser.feed_data(data)
        is_ok = parser.get_status_code() == 200
    except httptools.HttpParserError:
        is_ok = False
    return bytes(answer.body) if is_ok and len(answer.body) <= _MAX_BYTES else b""


def _model_ids(body: bytes) -> list[str] | None:
    try:
        listing = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    data = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(data, list):
        return None
    return [model["id"] for model in data if isinstance(model, dict) and isinstance(model.get("id"), str)]
