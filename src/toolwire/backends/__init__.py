"""Back ends: what answers requests, and how it is found."""

from __future__ import annotations

from .base import Backend, EventReply, Model, TokenCount, WireReply
from .registry import build

__all__ = ["Backend", "EventReply", "Model", "TokenCount", "WireReply", "build"]
