"""Named keys of clients: stored as hashes, each with an expiry, allowed models and routes, and limits.

A key is random and long, so a plain SHA-256 of it cannot be reversed by guessing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ConfigError, quote
from .store import SharedRecord, Store

SPACE = "key"
PREFIX = "tw-"
_BYTES = 30


class NamedKey(Struct, frozen=True, kw_only=True):
    """0 and empty tuples mean no limit. budget: tokens per period. max_cost: billionths of a dollar per period. expires: seconds since 1970.

    former: the hash before a rotation, valid until former_until.
    """

    id: str
    name: str
    hash: str
    created: float
    expires: float = 0.0
    models: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    streams: int = 0
    budget: int = 0
    max_cost: int = 0
    period: Literal["day", "month"] = "month"
    former: str = ""
    former_until: float = 0.0

    @property
    def is_limited(self) -> bool:
        return bool(self.requests_per_minute or self.tokens_per_minute or self.streams or self.budget or self.max_cost)

    @property
    def owner(self) -> str:
        """Whose the stored answers are. A rotation does not change it."""
        return f"key-{self.id}"

    def allows_model(self, model: str) -> bool:
        return not self.models or any(fnmatchcase(model, pattern) for pattern in self.models)

    def allows_route(self, path: str) -> bool:
        """path: without the version of the API."""
        return not self.routes or any(fnmatchcase(path, pattern) for pattern in self.routes)


_decode = msgspec.json.Decoder(NamedKey).decode


def hash_of(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class KeyDirectory:
    """The keys in a store. A secret is returned once, when it is made. Methods raise GatewayError if the store fails."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    async def all(self) -> list[NamedKey]:
        """By name."""
        found = [_decode(record.value) for record in await self._store.records(SPACE)]
        return sorted(found, key=lambda key: key.name)

    async def by_hash(self) -> dict[str, NamedKey]:
        """Those that are valid now, by the hashes of their secrets."""
        now = self._clock()
        keys: dict[str, NamedKey] = {}
        for key in await self.all():
            if key.expires and key.expires <= now:
                continue
            keys[key.hash] = key
            if key.former and key.former_until > now:
                keys[key.former] = key
        return keys

    async def create(self, draft: NamedKey) -> tuple[NamedKey, str]:
        """The key and its secret. id, hash and created of the draft are replaced. Raises ConfigError for a name that is in use."""
        if any(key.name == draft.name for key in await self.all()):
            raise ConfigError(f"there is a key {quote(draft.name)} already.", hint="Choose another name, or rotate it.")
        secret = _new_secret()
        key = replace(draft, id=secrets.token_hex(6), hash=hash_of(secret), created=self._clock())
        await self._put(key)
        return key, secret

    async def rotate(self, name: str, grace: float) -> tuple[NamedKey, str]:
        """A new secret for the same key; the old one works for so many seconds more."""
        key, secret = await self._find(name), _new_secret()
        key = replace(key, hash=hash_of(secret), former=key.hash if grace else "", former_until=self._clock() + grace)
        await self._put(key)
        return key, secret

    async def revoke(self, name: str) -> None:
        key = await self._find(name)
        await self._store.apply(drop=[(SPACE, key.id)])

    async def _find(self, name: str) -> NamedKey:
        key = next((key for key in await self.all() if key.name == name), None)
        if key is None:
            raise ConfigError(f"there is no key {quote(name)}.", hint="`toolwire key list` shows the keys.")
        return key

    async def _put(self, key: NamedKey) -> None:
        await self._store.apply(put=[SharedRecord(SPACE, key.id, msgspec.json.encode(key))])


def _new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_BYTES)
