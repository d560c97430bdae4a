"""The dialect of each kind of HTTP back end, and the address that its paths are added to."""

from __future__ import annotations

DIALECT_OF = {"openai-chat": "chat", "openai-responses": "responses", "anthropic": "messages", "gemini": "gemini"}
_VERSIONS = ("/v1", "/v1beta")  # that paths and base URLs may both contain


def base_of(url: str, path: str) -> str:
    """path: of the dialect. Base URL and path may both begin with the version of the API."""
    base, version = url.rstrip("/"), path[: path.find("/", 1)]
    return base.removesuffix(version) if version in _VERSIONS else base
