"""Queries to a running gateway: whether it answers and requires a key, its models, and connected VS Code windows."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ...config.file import Config
from ...config.secret import Resolver, Secret
from ...errors import ConfigError, quote
from ..serve import address_of
from .client import DUMMY, KEY

DEMO = "demo/echo-tools"
_MAX_BYTES = 4 * 1024 * 1024


class GatewayStatus(Struct, frozen=True, kw_only=True):
    """status is 0 if it does not answer. unlisted: its back ends whose models could not be listed. contexts: the known context windows,
    in tokens by model."""

    status: int = 0
    models: tuple[str, ...] = ()
    unlisted: str = ""
    contexts: dict[str, int] = {}

    def fault(self, address: str) -> ConfigError | None:
        """Why no model can be chosen from this list; None if one can. The demo model is no substitute for unreachable back ends."""
        if any(model != DEMO for model in self.models):
            return None
        choice = "or select a model with --model."
        if not self.status:
            return ConfigError(f"no gateway answers at {address}.", hint=f"Start it with `toolwire serve`, {choice}")
        if self.status in (401, 403):
            hint = f"Set {KEY} to one of its keys."
            return ConfigError(f"the gateway at {address} refuses the key ({self.status}).", hint=hint)
        if self.unlisted:
            fault = f"the gateway at {address} lists no model of {quote(self.unlisted)[1:-1]}, which cannot be reached."
            return ConfigError(fault, hint=f"`toolwire doctor` shows the reason. Correct it, {choice}")
        if not self.models:
            return ConfigError(f"{address} answers {self.status} and lists no models.", hint=f"Check the URL, {choice}")
        return None


def running(config: Config) -> GatewayStatus:
    return look(address_of(config.server), key_of(config))


def look(address: str, key: str, seconds: float = 2.0) -> GatewayStatus:
    """Lists the models of a gateway. Does not raise."""
    status, listing, unlisted = _get(address, "/v1/models", key, seconds)
    rows = _rows(listing)
    return GatewayStatus(
        status=status,
        models=tuple(row["id"] for row in rows),
        unlisted=unlisted,
        contexts={row["id"]: size for row in rows if type(size := row.get("context_length")) is int and size > 0},
    )


def windows_at(address: str, key: str, seconds: float = 2.0) -> int | None:
    """The number of connected VS Code windows; None if the gateway does not report it."""
    _, listing, _ = _get(address, "/bridge", key, seconds)
    windows = listing.get("windows") if isinstance(listing, dict) else None
    return len(windows) if isinstance(windows, list) else None


def key_from_environment() -> Secret:
    """The content of TOOLWIRE_KEY; empty if it is not set."""
    try:
        return Resolver(os.environ, Path()).secret(f"env:{KEY}")
    except ValueError as error:
        raise ConfigError(f"{error}; expected one line of printable ASCII.", where=KEY) from None


def key_of(config: Config) -> str:
    """TOOLWIRE_KEY, otherwise the first key of the configuration."""
    configured = config.server.keys[0].reveal() if config.server.keys else DUMMY
    return key_from_environment().reveal() or configured


def _get(address: str, path: str, key: str, seconds: float) -> tuple[int, Any, str]:
    """The status, 0 without an answer, the JSON body of a 200, and the back ends that a model list lacks."""
    connection = connect(address, seconds)
    try:
        connection.request("GET", path_at(address, path), headers={"authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        body = response.read(_MAX_BYTES)
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None, ""
    finally:
        connection.close()
    unlisted = response.headers.get("x-toolwire-unlisted", "")
    try:
        return response.status, json.loads(body) if response.status == 200 else None, unlisted
    except (ValueError, RecursionError):
        return response.status, None, unlisted


def connect(address: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return make(parts.hostname or "", parts.port, timeout=seconds)


def path_at(address: str, path: str) -> str:
    """A gateway may have a path prefix."""
    return urlsplit(address).path.rstrip("/") + path


def _rows(listing: Any) -> list[dict[str, Any]]:
    data = listing.get("data") if isinstance(listing, dict) else None
    rows = data if isinstance(data, list) else []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
