"""An MCP server: the command that starts it or its URL, its name, its errors, and the secrets that must not appear in messages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import ConfigError, quote

# fmt: off
_STARTERS = {
    "npx", "uvx", "uv", "pipx", "bunx", "bun", "node", "deno", "docker", "podman", "python", "python3", "run", "exec",
}
# fmt: on
_WRAPPING = re.compile(r"^(?:mcp[-_]server[-_]|server[-_]|mcp[-_])|(?:[-_]mcp[-_]server|[-_]mcp|[-_]server)$")
_HOST_LABELS = {"www", "mcp", "api"}
_MIN_SECRET = 6  # characters; shorter values are flags and numbers, which occur everywhere
_MAX_STDERR = 200  # characters


class Target(Struct, frozen=True, kw_only=True):
    """Either command or url is set. env and headers may hold secrets."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: dict[str, str] = {}
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Target({self.name!r})"

    @property
    def title(self) -> str:
        """The server's name in a message."""
        return f"MCP server {quote(self.name)}"

    def redact(self, text: str) -> str:
        """Replaces the values of env and headers."""
        for secret in (*self.env.values(), *(word for value in self.headers.values() for word in value.split())):
            if len(secret) >= _MIN_SECRET:
                text = text.replace(secret, "***")
        return text

    def quote(self, text: object) -> str:
        """Text of the server or the SDK, in one line, for a message."""
        return quote(self.redact(" ".join(str(text)[:2000].split())))

    def stderr_note(self, stderr: str) -> str:
        """The end of the server's standard error as a sentence, or ""."""
        text = " | ".join(line.strip() for line in stderr.splitlines() if line.strip())
        return f" It last said: {quote(self.redact(text)[-_MAX_STDERR:])}." if text else ""


class ServerFault(Exception):
    """The server failed. is_over: its session cannot be used any more."""

    def __init__(self, message: str, *, is_over: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_over = is_over


def target_of(
    where: str | Sequence[str], name: str | None, env: Mapping[str, str] | None, headers: Mapping[str, str] | None
) -> Target:
    """Raises ConfigError if it is neither a command nor a URL."""
    if isinstance(where, str) and re.match(r"^https?://", where, re.IGNORECASE):
        return Target(name=name or _name_of_url(where), url=where, headers=dict(headers or {}), env=dict(env or {}))
    try:
        command = tuple(shlex.split(where) if isinstance(where, str) else map(str, where))
    except ValueError as error:
        raise ConfigError(f"The command {quote(where)} cannot be read: {error}.", where="tools") from None
    if not command:
        raise ConfigError(
            f"Found {quote(where)} where an MCP server is expected.",
            where="tools",
            hint="Give a command line, or an address that begins with http:// or https://.",
        )
    return Target(name=name or _name_of_command(command), command=command, env=dict(env or {}))


def _name_of_url(url: str) -> str:
    """The distinctive part of the host: `acme` of https://mcp.acme.com/v1."""
    labels = (urlsplit(url).hostname or "").split(".")
    if labels[-1].isdigit() or ":" in labels[0] or labels == ["localhost"]:
        return "local"
    distinctive = [label for label in labels[:-1] if label not in _HOST_LABELS] or labels
    return _legal(distinctive[-1])


def _name_of_command(command: Sequence[str]) -> str:
    """The first word that is neither a launcher nor an option: `git` of `uvx mcp-server-git`."""
    words = [PurePath(word) for word in command if not word.startswith("-")]
    distinctive = (
        [word for word in words if word.stem.split(".")[0] not in _STARTERS] or words or [PurePath(command[0])]
    )
    # Without the suffix of a script and the version of a package.
    stem = re.sub(r"(?<=.)@.*$|:[^:]*$|\.(?:py|js|mjs|ts|sh|exe)$", "", distinctive[0].name)
    return _legal(_WRAPPING.sub("", stem) or stem)


def _legal(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")[:32] or "mcp"
