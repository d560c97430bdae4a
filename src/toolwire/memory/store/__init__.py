"""The store: answers, conversations and threads that outlive a request."""

from __future__ import annotations

from .base import CounterChange, Entry, Item, SharedRecord, Status, Store
from .factory import OpenedStore, open_store, store_for
from .memory import MemoryStore
from .sqlite import SqliteStore

__all__ = [
    "Store",
    "Entry",
    "Item",
    "Status",
    "CounterChange",
    "SharedRecord",
    "open_store",
    "store_for",
    "OpenedStore",
    "MemoryStore",
    "SqliteStore",
]
