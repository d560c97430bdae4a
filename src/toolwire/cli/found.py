"""The configuration a command works with: the file, or where there is none, what this machine offers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

import httptools
import msgspec
from cyclopts import Parameter

from ..catalog.discovery import discover
from ..config.file import Config, load, with_backends

ConfigFlag: TypeAlias = Annotated[
    Path | None,
    Parameter(help="Configuration file; otherwise ./toolwire.toml, then the one in your configuration folder."),
]

_LONGEST = 4 * 1024 * 1024


async def found_config(path: Path | None, *, port: int | None = None, is_serving: bool = False) -> Config:
    """port is where this gateway will listen, if not where the file says: it must not discover itself. is_serving: it will."""
    config = load(path, os.environ)
    if config.path:
        return config
    own_port = port or config.server.port
    return with_backends(config, await discover(os.environ, probe, own_port=own_port, is_serving=is_serving))


async def probe(url: str, key: str = "") -> list[str] | None:
    """The ids of the model list at a plain http URL, None where there is no such list. Raises OSError; no time limit."""
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
    """What httptools calls while it parses."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_complete = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


async def _body(reader: asyncio.StreamReader) -> bytes:
    """The body of a 200, empty for anything else."""
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    try:
        while not answer.is_complete and len(answer.body) <= _LONGEST:
            data = await reader.read(65536)
            if not data:
                break
            parser.feed_data(data)
        is_ok = parser.get_status_code() == 200
    except httptools.HttpParserError:
        is_ok = False
    return bytes(answer.body) if is_ok and len(answer.body) <= _LONGEST else b""


def _model_ids(body: bytes) -> list[str] | None:
    try:
        listing = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    data = listing.get("data") if isinstance(listing, dict) else None
    if not isinstance(data, list):
        return None
    return [model["id"] for model in data if isinstance(model, dict) and isinstance(model.get("id"), str)]
