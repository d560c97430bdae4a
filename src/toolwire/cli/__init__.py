"""The command line."""

from __future__ import annotations

from .app import main

__all__ = ["main"]
