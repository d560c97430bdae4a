"""Keys with names, and whether what the gateways counted for them is what their answers used."""

from __future__ import annotations

import asyncio
import time

from toolwire.memory.keys import KeyDirectory, NamedKey
from toolwire.memory.reservations import KeyLimits
from toolwire.memory.store.postgres.store import PostgresStore

from .traffic import ClientUsage, Findings

_BUDGET = 10**12
_SETTLE_SECONDS = 60.0


def open_store(url: str) -> PostgresStore:
    return PostgresStore(url, max_bytes=1 << 40, max_age=1e10)


async def make_keys(url: str, count: int) -> list[str]:
    """The secrets of clients. Every second one has a budget, so that it reserves tokens; the others are only counted."""
    store = open_store(url)
    directory = KeyDirectory(store, time.time)
    secrets = []
    for number in range(count):
        budget = _BUDGET if number % 2 else 0
        draft = NamedKey(id="", name=f"client-{number}", hash="", created=0.0, budget=budget, period="month")
        secrets.append((await directory.create(draft))[1])
    await store.close()
    return secrets


async def check_budgets(url: str, usages: list[ClientUsage], findings: Findings) -> dict[str, int]:
    """An answer that its client received is counted to the last token. A request whose answer was cut off counts for nothing, for what
    it used or for what it reserved: nobody can know more of a gateway that was killed."""
    store = open_store(url)
    keys = {key.name: key for key in await KeyDirectory(store, time.time).all()}
    limits = KeyLimits(store)
    end = time.monotonic() + _SETTLE_SECONDS
    while True:  # what a gateway could not settle during an outage is settled within seconds after it
        counted = [(await limits.used(keys[f"client-{number}"]))[0] for number in range(len(usages))]
        faults = [
            f"client-{number} used {usage.tokens} tokens and at most {usage.uncertain} more, but {count} are counted"
            for number, (usage, count) in enumerate(zip(usages, counted, strict=True))
            if not usage.tokens <= count <= usage.tokens + usage.uncertain
        ]
        if not faults or time.monotonic() > end:
            break
        await asyncio.sleep(1.0)
    await store.close()
    findings.problems += faults
    used = sum(usage.tokens for usage in usages)
    return {"answered": used, "counted": sum(counted), "most": used + sum(usage.uncertain for usage in usages)}
