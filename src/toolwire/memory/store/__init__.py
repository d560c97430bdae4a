"""What outlives a request: stored answers, conversations and threads, behind one protocol."""

from __future__ import annotations

from .base import Entry, Item, Status, Store
from .factory import OpenedStore, open_store
from .memory import MemoryStore
from .sqlite import SqliteStore

__all__ = ["Store", "Entry", "Item", "Status", "open_store", "OpenedStore", "MemoryStore", "SqliteStore"]
