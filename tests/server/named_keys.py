"""Named keys in a store, as another process makes them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from toolwire.config.file import StoreConfig
from toolwire.memory.keys import KeyDirectory, NamedKey
from toolwire.memory.store import Store, store_for


def in_store(path: Path, work: Any) -> Any:
    """What another process does with the store."""

    async def run() -> Any:
        store: Store = store_for(StoreConfig(path=str(path))).store
        try:
            return await work(KeyDirectory(store, time.time))
        finally:
            await store.close()

    return asyncio.run(run())


def create(path: Path, name: str, **limits: Any) -> str:
    draft = NamedKey(id="", name=name, hash="", created=0.0, **limits)
    secret: str = in_store(path, lambda directory: directory.create(draft))[1]
    return secret
