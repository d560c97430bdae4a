"""`[store] url`: which kind of store it means, and what may be set beside it. The URL may contain a password, so no message quotes it."""

from __future__ import annotations

from collections.abc import Set
from typing import Any
from urllib.parse import unquote, urlsplit

from ..errors import ConfigError, quote
from .secret import Secret

_SCHEMES = {"sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres"}


def with_store_url(fields: dict[str, Any], given: Set[str]) -> dict[str, Any]:
    """The fields of [store] with kind and path as the URL has them. given: the keys in the file. Raises ConfigError; where is a key."""
    kind, path, url = fields.get("kind", "sqlite"), fields.get("path", ""), fields.get("url") or Secret()
    if path and kind != "sqlite":
        raise ConfigError(f'found a path for kind {quote(kind)}; expected one only for kind "sqlite".', where="path")
    if not url:
        if kind == "postgres":
            message = 'kind "postgres" needs a url such as "postgresql://user@host/database".'
            raise ConfigError(message, where="kind")
        return fields
    if path:
        raise ConfigError("found url and path; expected one of them.", where="url")
    found = _kind_of(url.reveal())
    if "kind" in given and kind != found:
        raise ConfigError(f"found kind {quote(kind)} and a url of kind {quote(found)}.", where="kind")
    if found == "sqlite":
        file = unquote(url.reveal().partition("://")[2].removeprefix("/"))
        if not file:
            raise ConfigError('found a url without a file; expected "sqlite:///path/of/the/file".', where="url")
        return fields | {"kind": "sqlite", "path": file, "url": Secret()}
    return fields | {"kind": "postgres"}


def _kind_of(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_complete = parts.scheme in _SCHEMES and (parts.scheme == "sqlite" or bool(parts.netloc or parts.query))
    except ValueError:
        is_complete = False
    if not is_complete:
        message = 'found no URL of a store; expected "sqlite:///file" or "postgresql://user:password@host/database".'
        raise ConfigError(message, where="url")
    return _SCHEMES[parts.scheme]
