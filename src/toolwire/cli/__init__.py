"""The command line."""

from __future__ import annotations

from .entry import main

__all__ = ["main"]
