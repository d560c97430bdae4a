"""Things that answer: where I/O with a model lives."""

from __future__ import annotations

from .base import Backend, EventReply, Model, WireReply
from .registry import build

__all__ = ["Backend", "EventReply", "Model", "WireReply", "build"]
