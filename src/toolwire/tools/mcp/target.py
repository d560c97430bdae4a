"""Where an MCP server is: a command to start or an address to call, what it is called, and what must not be told of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import ConfigError, quote

_STARTERS = {
    "npx",
    "uvx",
    "uv",
    "pipx",
    "bunx",
    "bun",
    "node",
    "deno",
    "docker",
    "podman",
    "python",
    "python3",
    "run",
    "exec",
}
_WRAPPING = re.compile(r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|(?:[-_]mcp[-_]server|[-_]mcp|[-_]server)$")
_HOST_LABELS = {"www", "mcp", "api"}
_SECRET = 6  # characters; shorter values are flags and numbers, and hiding those would hide everything


class Target(Struct, frozen=True, kw_only=True):
    """Either command or url is set. env and headers may hold secrets."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Target({self.name!r})"

    def told(self, text: str) -> str:
        """Text from or about the server without what was handed to it in confidence."""
        for secret in (*self.env.values(), *(word for value in self.headers.values() for word in value.split())):
            if len(secret) >= _SECRET:
                text = text.replace(secret, "***")
        return text


def target_of(
    where: str | Sequence[str], name: str | None, env: Mapping[str, str] | None, headers: Mapping[str, str] | None
) -> Target:
    """ConfigError where it is neither a command nor an address."""
    if isinstance(where, str) and re.match(r"^https?://", where, re.IGNORECASE):
        return Target(name=name or _name_of_url(where), url=where, headers=dict(headers or {}), env=dict(env or {}))
    command = _split(where)
    if not command:
        raise ConfigError(
            f"Found {quote(where)} where an MCP server is expected.",
            where="tools",
            hint="Give a command line, or an address that begins with http:// or https://.",
        )
    return Target(name=name or _name_of_command(command), command=command, env=dict(env or {}))


def _split(where: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(where, str):
        return tuple(map(str, where))
    try:
        return tuple(shlex.split(where))
    except ValueError as error:
        raise ConfigError(f"The command {quote(where)} cannot be read: {error}.", where="tools") from None


def _name_of_url(url: str) -> str:
    """What tells one host from others: `acme` of https://mcp.acme.com/v1."""
    labels = (urlsplit(url).hostname or "").split(".")
    if labels[-1].isdigit() or ":" in labels[0] or labels == ["localhost"]:
        return "local"
    telling = [label for label in labels[:-1] if label not in _HOST_LABELS] or labels
    return _legal(telling[-1])


def _name_of_command(command: Sequence[str]) -> str:
    """The first word that is neither a starter of programs nor an option: `git` of `uvx mcp-server-git`."""
    words = [PurePath(word) for word in command if not word.startswith("-")]
    telling = [word for word in words if word.stem.split(".")[0] not in _STARTERS] or words or [PurePath(command[0])]
    # A script's name says more without its suffix, a package's name more without its version.
    stem = re.sub(r"(?<=.)@.*$|:[^:]*$|\.(?:py|js|mjs|ts|sh|exe)$", "", telling[0].name)
    return _legal(_WRAPPING.sub("", stem) or stem)


def _legal(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:32] or "mcp"
