"""`[mcp.servers.NAME]`: MCP servers that the gateway mounts. Secrets of env and headers may come from variables and files."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ConfigError, quote
from .secret import Resolver
from .values import McpServerConfig

# Names of tools begin with it and two underscores, so it may neither contain two nor end in one.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?![_]|$)){0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def mcp_server_config(name: str, fields: dict[str, Any], resolver: Resolver) -> McpServerConfig:
    """fields: with values of the right types. Raises ConfigError; where is a key, "" for the table."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"found the name {quote(name)}; expected letters, digits, dashes and single underscores, at most 32."
        )
    if bool(fields.get("command")) == bool(fields.get("url")):
        raise ConfigError('expected either command = ["PROGRAM", "ARGUMENT"] or url = "https://...".')
    if not all(fields.get("command", ())):
        raise ConfigError("found an empty string; expected a program and its arguments.", where="command")
    if "env" in fields and "url" in fields:
        raise ConfigError("found env beside url; expected headers: only programs have an environment.", where="env")
    if "headers" in fields and "command" in fields:
        raise ConfigError("found headers beside command; expected env: only a URL has headers.", where="headers")
    env = _resolved("env", fields.get("env", {}), _VARIABLE, "of a variable", resolver)
    headers = _resolved("headers", fields.get("headers", {}), _HEADER_NAME, "of an HTTP header", resolver)
    return McpServerConfig(name=name, **fields | {"env": env, "headers": headers})


def _resolved(
    key: str, values: dict[str, str], names: re.Pattern[str], whose: str, resolver: Resolver
) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        if not names.fullmatch(name):
            raise ConfigError(f"found {quote(name)}; expected the name {whose}.", where=key)
        try:
            found[name] = resolver.resolve(value)
        except ValueError as error:
            raise ConfigError(f"{quote(name)}: {error}; expected one line of printable ASCII.", where=key) from None
        if resolver.missing:
            raise ConfigError(f"{quote(name)}: {resolver.missing[0]}; the server needs it.", where=key)
    return found
