"""Codex app-server: the features of each version, and its tier: how tools are called with it.

The version comes from the server's user agent. Features are never probed: old versions accept unknown members and ignore them.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ....errors import ConfigError, quote

TierName: TypeAlias = Literal["replay", "held", "sentinel"]

_VERSION = re.compile(r"^[^/]{0,200}/(\d{1,5})\.(\d{1,5})\.(\d{1,5})")


class Version(NamedTuple):
    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


_FROM_SOURCE = Version(0, 0)  # the version of a build from source


class Abilities:
    """From the release tags of the program; 0.89.0, 0.98.0, 0.110.0 and 0.166.0 were run.

    contents: a tool result is a list of contents, not one text. marker: the end of a response is reported while its calls wait.
    bare: every built-in tool and prompt text can be removed. revert: a thread can be reverted to the state before a turn.
    resume_history: a thread can be resumed from a history that the client sends.
    """

    def __init__(self, version: Version) -> None:
        def since(minor: int) -> bool:
            return version == _FROM_SOURCE or version >= Version(0, minor)

        self.ephemeral = since(90)
        self.dynamic_tools = since(92)
        self.contents = since(97)
        self.unsubscribe = since(106)
        self.inject = since(121)
        self.empty_turn = since(144)  # 0.130 refuses one, and then reports nothing more about it
        self.typed_tools = since(141)
        self.marker = self.bare = since(145)
        self.revert = since(148)
        self.resume_history = since(89) and not since(121)  # replaced by thread/inject_items


class Tier(Struct, frozen=True):
    """How tools are called, from a version on.

    replay: native calls; every request has the whole conversation, and no turn stays open. held: native calls; a turn with open calls
    waits for the client's results. sentinel: no native calls; the prompt describes how to write them, and they are parsed from the text.
    """

    name: TierName
    since: Version

    @property
    def is_native(self) -> bool:
        """Codex offers the client's tools to the model."""
        return self.name != "sentinel"

    @property
    def is_held(self) -> bool:
        """The turn stays open until the client sends results."""
        return self.name == "held"


# The best one first.
TIERS: dict[str, Tier] = {
    "replay": Tier("replay", Version(0, 145)),
    "held": Tier("held", Version(0, 92)),
    "sentinel": Tier("sentinel", _FROM_SOURCE),
}


def version_of(user_agent: str) -> Version:
    """From `initialize.userAgent`: client name, slash, version, and more."""
    found = _VERSION.match(user_agent)
    if found is None:
        raise ConfigError(
            f"the program calls itself {quote(user_agent)}; expected NAME/VERSION.",
            hint="Check that the command starts `codex app-server`.",
            code="codex_unknown",
        )
    return Version(*map(int, found.groups()))


def tier_for(version: Version, wanted: str = "auto") -> Tier:
    """The best tier of this version, or the configured one."""
    if wanted in ("auto", "mcp"):  # the tier "mcp" was removed; old configurations may still have it
        return next(tier for tier in TIERS.values() if version == _FROM_SOURCE or version >= tier.since)
    tier = TIERS.get(wanted)
    if tier is None:
        raise ConfigError(f"found {quote(wanted)}; expected one of auto, {', '.join(TIERS)}.", where="tier")
    if version != _FROM_SOURCE and version < tier.since:
        raise ConfigError(
            f"Codex {version} has no tier {quote(wanted)}; it is there from {tier.since.major}.{tier.since.minor}.",
            where="tier",
            hint=f"Set it to auto, which is {tier_for(version).name} here, or install another version of Codex.",
        )
    return tier
