"""What the running gateway says of itself: is it there, does it want a key, which models does it list."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

_LONGEST = 4 * 1024 * 1024


class Found(Struct, frozen=True, kw_only=True):
    """status is 0 when nobody answers."""

    status: int = 0
    models: tuple[str, ...] = ()


def look(address: str, key: str, seconds: float = 2.0) -> Found:
    """The model list of a gateway; whatever goes wrong is an answer too."""
    connection = connect(address, seconds)
    try:
        connection.request("GET", path_at(address, "/v1/models"), headers=bearer(key))
        response = connection.getresponse()
        body = response.read(_LONGEST)
    except (OSError, http.client.HTTPException, ValueError):
        return Found()
    finally:
        connection.close()
    return Found(status=response.status, models=_ids(body) if response.status == 200 else ())


def connect(address: str, seconds: float) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return make(parts.hostname or "", parts.port, timeout=seconds)


def path_at(address: str, path: str) -> str:
    """A gateway may be behind a path of its own."""
    return urlsplit(address).path.rstrip("/") + path


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _ids(body: bytes) -> tuple[str, ...]:
    try:
        listing = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    data = listing.get("data") if isinstance(listing, dict) else None
    rows = data if isinstance(data, list) else []
    return tuple(row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str))
