"""The clients that can be connected, from programs.toml and libraries.toml: read by `toolwire connect`, the README and the documents."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from ...config.file import suggestion
from ...errors import ConfigError, quote
from .client import Client, DialectSetup, fill

_LEVELS = 3  # placeholders whose text contains placeholders


def clients() -> dict[str, Client]:
    """By name: programs, then libraries."""
    return {client.name: client for client in (*read_clients("programs"), *read_clients("libraries"))}


def find_client(name: str) -> Client:
    """By its name, its title or its command, in any case and with any separators: claude-code, Claude Code, claude."""
    known = clients()
    if name in known:
        return known[name]
    letters = _letters(name)
    for client in known.values():
        if letters and letters in (_letters(client.name), _letters(client.title), client.start):
            return client
    raise ConfigError(
        f"there is no client {quote(name)}{suggestion(name, known)}", hint="`toolwire connect` lists the clients."
    )


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def read_clients(kind: str) -> tuple[Client, ...]:
    """kind: "programs" or "libraries"."""
    data = tomllib.loads((files(__package__) / f"{kind}.toml").read_text("utf-8"))
    return tuple(_client(name, table, data.get("languages", {})) for name, table in data["clients"].items())


def _client(name: str, table: dict[str, Any], languages: dict[str, Any]) -> Client:
    shared = {**languages.get(table.get("language", ""), {}), **table}
    ways = tuple(_setup(dialect, {**shared, **own}) for dialect, own in table["dialects"].items())
    return msgspec.convert({**table, "name": name, "ways": ways}, Client)


def _setup(dialect: str, members: dict[str, Any]) -> DialectSetup:
    """members: of the language, the client and the dialect. Each one that is text replaces its placeholder in the others."""
    texts = {name: text for name, text in members.items() if isinstance(text, str)}
    members = {**members, "code": members.get("template", ""), "dialect": dialect}
    for _ in range(_LEVELS):
        members = fill(members, texts)
    return msgspec.convert(members, DialectSetup)
