"""Versions of Codex: read from what it calls itself, and the tier that each has."""

from __future__ import annotations

import pytest

from tests.backends.codex.wire.recorded import VERSIONS, records
from toolwire.backends.codex.wire.versions import Abilities, Version, tier_for, version_of
from toolwire.errors import ConfigError


@pytest.mark.parametrize("version", VERSIONS)
def test_the_version_is_read_from_the_recorded_answer(version: str) -> None:
    answers = (record["msg"].get("result") for record in records(version, "02_plain_turn") if record["dir"] == "server")
    agent = next(answer["userAgent"] for answer in answers if answer)
    assert str(version_of(agent)) == version


def test_a_version_before_its_release_is_that_version() -> None:
    assert version_of("toolwire/0.145.0-alpha.3 (Mac OS; arm64)") == Version(0, 145)


@pytest.mark.parametrize("agent", ["", "codex", "toolwire/dev", "x" * 5000 + "/1.2.3", "a/999999999.1.1"])
def test_what_is_no_version_is_the_owners_fault(agent: str) -> None:
    with pytest.raises(ConfigError, match="expected NAME/VERSION"):
        version_of(agent)


@pytest.mark.parametrize(
    ("version", "tier"),
    [
        (Version(0, 60), "sentinel"),
        (Version(0, 88, 9), "sentinel"),
        (Version(0, 91, 5), "sentinel"),
        (Version(0, 92), "held"),
        (Version(0, 144, 1), "held"),
        (Version(0, 145), "replay"),
        (Version(0, 166), "replay"),
        (Version(1, 0), "replay"),
        (Version(0, 0), "replay"),  # built from source
    ],
)
def test_the_best_tier_of_a_version(version: Version, tier: str) -> None:
    assert tier_for(version).name == tier


def test_the_owner_may_want_a_lesser_tier() -> None:
    assert tier_for(Version(0, 166), "held").is_held
    assert not tier_for(Version(0, 166), "sentinel").is_native


@pytest.mark.parametrize(("version", "wanted"), [(Version(0, 89), "replay"), (Version(0, 91), "held")])
def test_a_tier_that_the_version_has_not_is_refused_in_a_sentence(version: Version, wanted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tier_for(version, wanted)
    assert f'Codex {version} has no tier "{wanted}"' in caught.value.sentence()
    assert tier_for(version).name in caught.value.sentence()


def test_the_removed_tier_is_read_as_auto() -> None:
    assert tier_for(Version(0, 89), "mcp") == tier_for(Version(0, 89))


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected one of auto, replay, held, sentinel"):
        tier_for(Version(0, 166), "magic")


def test_abilities_come_and_some_go() -> None:
    old, new = Abilities(Version(0, 89)), Abilities(Version(0, 166))
    assert (old.resume_history, old.inject, old.marker) == (True, False, False)
    assert (new.resume_history, new.inject, new.marker) == (False, True, True)
    assert Abilities(Version(0, 96)).contents is False
    assert Abilities(Version(0, 97)).contents is True
