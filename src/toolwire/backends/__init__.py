"""Back ends: what answers requests, and how it is found."""

from __future__ import annotations

from ..config.values import BackendConfig
from .base import Backend, EventReply, Model, TokenCount, WireReply
from .registry import build

__all__ = ["Backend", "BackendConfig", "EventReply", "Model", "TokenCount", "WireReply", "build"]
