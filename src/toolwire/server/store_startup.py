"""The store at the start of a server: opened as configured, with warnings for the owner in the log."""

from __future__ import annotations

from collections.abc import Callable

from ..config.file import StoreConfig
from ..memory.store import Store, store_for


def opened_store(config: StoreConfig, say: Callable[..., None]) -> Store:
    """Raises ConfigError when it cannot be used."""
    opened = store_for(config)
    if opened.warning:
        say("warning", opened.warning)
    return opened.store


async def report_outage(store: Store, say: Callable[..., None]) -> None:
    """A store that is down now is no reason not to start. Raises ConfigError for one that cannot be used."""
    if why := await store.open():
        say("warning", f"the store cannot be used yet: {why} Requests without stored state work.")
