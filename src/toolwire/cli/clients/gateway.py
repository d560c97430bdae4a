"""What the running gateway reports: is it there, does it want a key, its models, and the VS Code windows connected to it."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ...config.file import Config
from ...config.secret import Resolver
from ...errors import ConfigError
from ..serve import address_of
from .client import DUMMY, KEY

_LONGEST = 4 * 1024 * 1024


class Found(Struct, frozen=True, kw_only=True):
    """status is 0 when nobody answers."""

    status: int = 0
    models: tuple[str, ...] = ()


def running(config: Config) -> Found:
    """The gateway of this configuration, if it runs."""
    return look(address_of(config.server), key_of(config))


def look(address: str, key: str, seconds: float = 2.0) -> Found:
    """The model list of a gateway; a failure is a result too."""
    status, listing = _get(address, "/v1/models", key, seconds)
    return Found(status=status, models=_ids(listing))


def windows_at(address: str, key: str, seconds: float = 2.0) -> int | None:
    """How many VS Code windows are connected; None for a gateway that does not say."""
    _, listing = _get(address, "/bridge", key, seconds)
    windows = listing.get("windows") if isinstance(listing, dict) else None
    return len(windows) if isinstance(windows, list) else None


def key_of(config: Config) -> str:
    """The key to ask it with: TOOLWIRE_KEY, otherwise the first of the configuration."""
    try:
        given = Resolver(os.environ, Path()).resolve(f"env:{KEY}")
    except ValueError as error:
        raise ConfigError(f"{error}; expected one line of printable ASCII.", where=KEY) from None
    return given or (config.server.keys[0].reveal() if config.server.keys else DUMMY)


def _get(address: str, path: str, key: str, seconds: float) -> tuple[int, Any]:
    """The status, 0 where there is no answer, and the JSON of a 200."""
    connection = connect(address, seconds)
    try:
        connection.request("GET", path_at(address, path), headers=bearer(key))
        response = connection.getresponse()
        body = response.read(_LONGEST)
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    finally:
        connection.close()
    try:
        return response.status, json.loads(body) if response.status == 200 else None
    except (ValueError, RecursionError):
        return response.status, None


def connect(address: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return make(parts.hostname or "", parts.port, timeout=seconds)


def path_at(address: str, path: str) -> str:
    """A gateway may be behind a path of its own."""
    return urlsplit(address).path.rstrip("/") + path


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _ids(listing: Any) -> tuple[str, ...]:
    data = listing.get("data") if isinstance(listing, dict) else None
    rows = data if isinstance(data, list) else []
    return tuple(row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str))
