from __future__ import annotations

import asyncio

import pytest

from toolwire.errors import ConfigError
from toolwire.memory.keys import KeyDirectory, NamedKey, hash_of
from toolwire.memory.store.memory import MemoryStore

DRAFT = NamedKey(id="", name="ann", hash="", created=0.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def directory(clock: Clock) -> KeyDirectory:
    return KeyDirectory(MemoryStore(max_bytes=1 << 20, max_age=1e9), clock)


def test_only_the_hash_is_stored(directory: KeyDirectory) -> None:
    async def run() -> None:
        key, secret = await directory.create(DRAFT)
        assert secret.startswith("tw-")
        assert len(secret) > 40
        (stored,) = await directory.all()
        assert stored == key
        assert secret not in repr(stored)
        assert (await directory.by_hash())[hash_of(secret)] == key

    asyncio.run(run())


def test_a_name_is_used_once(directory: KeyDirectory) -> None:
    async def run() -> None:
        await directory.create(DRAFT)
        await directory.create(DRAFT)

    with pytest.raises(ConfigError, match='a key "ann" already'):
        asyncio.run(run())


def test_a_rotated_key_works_for_its_grace_period_and_stays_the_same_owner(
    directory: KeyDirectory, clock: Clock
) -> None:
    async def run() -> None:
        old_key, old = await directory.create(DRAFT)
        new_key, new = await directory.rotate("ann", 60)
        assert old_key.owner == new_key.owner
        assert set(await directory.by_hash()) == {hash_of(old), hash_of(new)}
        clock.now += 61
        assert set(await directory.by_hash()) == {hash_of(new)}

    asyncio.run(run())


def test_expired_and_revoked_keys_are_not_valid(directory: KeyDirectory, clock: Clock) -> None:
    async def run() -> None:
        await directory.create(NamedKey(id="", name="bob", hash="", created=0.0, expires=1010.0))
        await directory.create(DRAFT)
        await directory.revoke("ann")
        assert len(await directory.by_hash()) == 1
        clock.now = 1010.0
        assert await directory.by_hash() == {}
        with pytest.raises(ConfigError, match='no key "ann"'):
            await directory.revoke("ann")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("models", "model", "is_allowed"),
    [((), "any", True), (("local/*",), "local/m", True), (("local/*",), "openai/m", False), (("a", "b"), "b", True)],
)
def test_models_are_patterns(models: tuple[str, ...], model: str, is_allowed: bool) -> None:
    assert NamedKey(id="", name="x", hash="", created=0.0, models=models).allows_model(model) is is_allowed
