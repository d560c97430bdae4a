"""The route table: which dialect a path belongs to, and what a client can request there."""

from __future__ import annotations

from collections.abc import Mapping

from ..dialects import DIALECTS, Dialect
from ..dialects.base import Endpoint, match_nothing

_EXACT = {path: (dialect, endpoint) for dialect in DIALECTS.values() for path, endpoint in dialect.routes.items()}
_MATCHING = [dialect for dialect in DIALECTS.values() if dialect.match is not match_nothing]
_STARTS = {path: dialect for path, (dialect, _) in _EXACT.items()} | {"/conversations": DIALECTS["responses"]}
_MODELS = Endpoint(task="models")


def without_version(path: str) -> str:
    """Clients may have /v1 in their base URL, or not."""
    return path.removeprefix("/v1").rstrip("/") or "/"


def find(path: str, short: str, query: bytes, headers: Mapping[str, str]) -> tuple[Dialect, Endpoint | None]:
    """short: the path without its version. Without an endpoint the dialect is that of the error."""
    if (exact := _EXACT.get(short)) is not None:
        return exact
    for dialect in _MATCHING:
        if (endpoint := dialect.match(path, query)) is not None:
            return dialect, endpoint
    dialect = dialect_of(short, headers)
    if short == "/models":
        return dialect, _MODELS
    if short.startswith("/models/"):
        return dialect, Endpoint(task="model", model=short.removeprefix("/models/"))
    return dialect, None


def dialect_of(path: str, headers: Mapping[str, str]) -> Dialect:
    """By the start of the path, else by the headers."""
    path = path.removeprefix("/v1")
    for start, dialect in _STARTS.items():
        if path.startswith(start):
            return dialect
    return next((dialect for dialect in reversed(DIALECTS.values()) if dialect.claims(headers)), DIALECTS["chat"])
