"""The route table: which dialect and endpoint a path belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from . import FRONTS, FrontDialect
from .base import Endpoint, match_nothing

# Exact paths without a version, dialects with other paths, and starts of paths that only decide the dialect of an error.
_EXACT = {path: (dialect, endpoint) for dialect in FRONTS.values() for path, endpoint in dialect.routes.items()}
PATHS = _EXACT | {f"/v1{path}": found for path, found in _EXACT.items()}  # as clients write most of them
_MATCHING = [dialect for dialect in FRONTS.values() if dialect.match is not match_nothing]
_STARTS = {path: dialect for path, (dialect, _) in _EXACT.items()} | {
    dialect.error_paths: dialect for dialect in FRONTS.values() if dialect.error_paths
}
_MODELS = Endpoint(task="models")


def without_version(path: str) -> str:
    """Clients may have /v1 in their base URL, or not."""
    return path.removeprefix("/v1").rstrip("/") or "/"


def find(path: str, short: str, query: bytes, headers: Mapping[str, str]) -> tuple[FrontDialect, Endpoint | None]:
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


def dialect_of(path: str, headers: Mapping[str, str]) -> FrontDialect:
    """By the start of the path, else by the headers."""
    path = path.removeprefix("/v1")
    for start, dialect in _STARTS.items():
        if path.startswith(start):
            return dialect
    return next((dialect for dialect in reversed(FRONTS.values()) if dialect.claims(headers)), FRONTS["chat"])
