"""`toolwire key`: makes, lists, rotates and revokes the named keys of clients."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from cyclopts import App, Parameter

from ..catalog.found import found_config
from ..errors import ConfigError, quote
from ..memory.keys import KeyDirectory, NamedKey
from ..memory.reservations import KeyLimits
from ..memory.store import Store, store_for
from ..telemetry.prices import DOLLAR, dollars
from .serve import ConfigFlag

key = App(name="key", help="Make, list, rotate and revoke the keys of clients.", help_format="plaintext")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DURATION = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_T = TypeVar("_T")


@key.command
def new(
    name: Annotated[str, Parameter(help="Who or what uses the key; it appears in logs and statistics.")],
    *,
    expires: Annotated[str, Parameter(help="After which time it ends, such as 30d or 12h.")] = "",
    model: Annotated[
        tuple[str, ...], Parameter(help="Allowed model, with * as wildcard; can be repeated.", negative="")
    ] = (),
    route: Annotated[
        tuple[str, ...], Parameter(help="Allowed path without /v1, such as /chat/*; can be repeated.", negative="")
    ] = (),
    requests_per_minute: Annotated[int, Parameter(name=["--requests-per-minute", "--rpm"], help="0 is no limit.")] = 0,
    tokens_per_minute: Annotated[int, Parameter(name=["--tokens-per-minute", "--tpm"], help="0 is no limit.")] = 0,
    streams: Annotated[int, Parameter(help="Requests that may be open at once; 0 is no limit.")] = 0,
    budget: Annotated[int, Parameter(help="Tokens per period; 0 is no limit.")] = 0,
    max_cost: Annotated[float, Parameter(help="US dollars per period; 0 is no limit.")] = 0.0,
    period: Annotated[Literal["day", "month"], Parameter(help="Of the budget, in UTC.")] = "month",
    config: ConfigFlag = None,
) -> int:
    """Make a key and print it. It is stored as a hash, so it cannot be shown again."""
    if not _NAME.fullmatch(name):
        raise ConfigError(f"found {quote(name)}; expected letters, digits, dots, dashes and underscores.", where="NAME")
    limits: dict[str, float] = {
        "--rpm": requests_per_minute,
        "--tpm": tokens_per_minute,
        "--streams": streams,
        "--budget": budget,
    }
    limits["--max-cost"] = max_cost if math.isfinite(max_cost) else -1
    for flag, limit in limits.items():
        if limit < 0:
            raise ConfigError(f"found {limit}; expected 0 or more.", where=flag)
    draft = NamedKey(
        id="",
        name=name,
        hash="",
        created=0.0,
        expires=time.time() + _seconds(expires, "--expires") if expires else 0.0,
        models=model,
        routes=route,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        streams=streams,
        budget=budget,
        max_cost=round(max_cost * DOLLAR),
        period=period,
    )
    _, secret = _with_store(config, lambda store: KeyDirectory(store, time.time).create(draft))
    print(secret)
    return 0


@key.command(name="list")
def list_keys(
    *,
    json: Annotated[bool, Parameter(help="Write JSON, for programs.", negative="")] = False,
    config: ConfigFlag = None,
) -> int:
    """List the keys with their limits, and the tokens and cost of the current period."""
    found = _with_store(config, _listed)
    if json:
        lines = [
            {**msgspec.to_builtins(one), "max_cost": dollars(one.max_cost), "used": used, "cost": dollars(cost)}
            for one, (used, cost) in found
        ]
        for line in lines:
            for hidden in ("hash", "former"):
                line.pop(hidden)
        print(msgspec.json.format(msgspec.json.encode(lines), indent=2).decode())
        return 0
    for one, (used, cost) in found:
        print(f"{one.name}: {_describe(one, used, cost)}")
    if not found:
        print("There are no named keys; `toolwire key new NAME` makes one.")
    return 0


@key.command
def rotate(
    name: Annotated[str, Parameter(help="The key.")],
    *,
    grace: Annotated[str, Parameter(help="How long the old key still works, such as 1h.")] = "",
    config: ConfigFlag = None,
) -> int:
    """Replace a key and print the new one. Stored answers, limits and statistics stay."""
    seconds = _seconds(grace, "--grace") if grace else 0
    _, secret = _with_store(config, lambda store: KeyDirectory(store, time.time).rotate(name, seconds))
    print(secret)
    return 0


@key.command
def revoke(name: Annotated[str, Parameter(help="The key.")], *, config: ConfigFlag = None) -> int:
    """End a key. Running gateways refuse it within a few seconds."""
    _with_store(config, lambda store: KeyDirectory(store, time.time).revoke(name))
    print(f"{name} is revoked.")
    return 0


async def _listed(store: Store) -> list[tuple[NamedKey, tuple[int, int]]]:
    limits = KeyLimits(store)
    return [(one, await limits.used(one)) for one in await KeyDirectory(store, time.time).all()]


def _with_store(path: Path | None, work: Callable[[Store], Awaitable[_T]]) -> _T:
    async def run() -> _T:
        config = await found_config(path)
        if config.store.kind == "memory":
            raise ConfigError("keys need a store that outlives the process.", where="[store] kind")
        store = store_for(config.store, connections=1).store
        try:
            if why := await store.open():
                raise ConfigError(f"the store cannot be used: {why}", where="[store]")
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def _seconds(text: str, flag: str) -> int:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ConfigError(f"found {quote(text)}; expected a number and s, m, h or d, such as 30d.", where=flag)
    return int(found[1]) * _UNITS[found[2]]


def _describe(one: NamedKey, used: int, cost: int) -> str:
    parts = [f"{used} tokens used this {one.period}{f' of {one.budget}' if one.budget else ''}"]
    if one.max_cost or cost:
        limit = f" of ${dollars(one.max_cost):,.2f}" if one.max_cost else ""
        parts.append(f"${dollars(cost):,.4f} this {one.period}{limit}")
    parts += [f"{one.requests_per_minute} requests per minute"] if one.requests_per_minute else []
    parts += [f"{one.tokens_per_minute} tokens per minute"] if one.tokens_per_minute else []
    parts += [f"{one.streams} at once"] if one.streams else []
    parts += [f"models {', '.join(one.models)}"] if one.models else []
    parts += [f"routes {', '.join(one.routes)}"] if one.routes else []
    if one.expires:
        is_over = one.expires <= time.time()
        parts.append(
            f"{'expired' if is_over else 'expires'} {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(one.expires))}"
        )
    return "; ".join(parts)
