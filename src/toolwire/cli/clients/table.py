"""The clients that can be connected, from programs.toml and libraries.toml: read by `toolwire connect`, the README and the documents."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from .client import Client, DialectSetup, fill

_LEVELS = 3  # placeholders whose text contains placeholders


def clients() -> dict[str, Client]:
    """By name: programs, then libraries."""
    return {client.name: client for client in (*read_clients("programs"), *read_clients("libraries"))}


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
