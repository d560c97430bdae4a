"""Ollama: names and values that requests and answers share."""

from __future__ import annotations

from datetime import UTC, datetime

NAME = "ollama"
NDJSON = "application/x-ndjson"


def date_of(seconds: int) -> str:
    """A time as this API writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
