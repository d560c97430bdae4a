"""Codex app-server: features by version, and which of three tiers of tool calling a version supports, as data.

The version comes from the server's user agent. Features are never probed: old versions accept unknown members and ignore them.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ....errors import ConfigError, quote

TierName: TypeAlias = Literal["replay", "held", "sentinel"]
WANTED: tuple[str, ...] = ("auto", "replay", "held", "sentinel")

_VERSION = re.compile(r"^[^/]{0,200}/(\d{1,5})\.(\d{1,5})\.(\d{1,5})")


class Version(NamedTuple):
    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Abilities(Struct, frozen=True, kw_only=True):
    """Features of one version; each member has its line in SINCE.

    contents: a tool's result is a list of contents, where it was one text before. marker: the end of the model's response is told
    while its calls still wait. bare: every built-in tool and prompt text can be taken out. revert: a thread can be taken back to where
    it stood before a turn. resume_history: a thread can be resumed
    from a history that the client gives.
    """

    ephemeral: bool = False
    dynamic_tools: bool = False
    contents: bool = False
    opt_out: bool = False
    unsubscribe: bool = False
    inject: bool = False
    empty_turn: bool = False
    typed_tools: bool = False
    marker: bool = False
    bare: bool = False
    revert: bool = False
    resume_history: bool = False


# From the release tags of the program; 0.89.0, 0.98.0, 0.110.0 and 0.166.0 were run.
SINCE: dict[str, Version] = {
    "resume_history": Version(0, 89),
    "ephemeral": Version(0, 90),
    "dynamic_tools": Version(0, 92),
    "contents": Version(0, 97),
    "opt_out": Version(0, 99),
    "unsubscribe": Version(0, 106),
    "inject": Version(0, 121),
    "empty_turn": Version(0, 144),  # 0.130 refuses one, and then says nothing more of it
    "typed_tools": Version(0, 141),
    "marker": Version(0, 145),
    "bare": Version(0, 145),
    "revert": Version(0, 148),
}
UNTIL: dict[str, Version] = {
    "resume_history": Version(0, 120),  # thread/inject_items is there after that
}
_FROM_SOURCE = Version(0, 0)  # what a build of one's own calls itself


class Tier(Struct, frozen=True, kw_only=True):
    """One way of calling tools. until is the last version that has it, None where there is no last one; words are for people."""

    name: TierName
    number: int
    since: Version
    until: Version | None = None
    words: str = ""

    @property
    def is_native(self) -> bool:
        """Codex offers the client's tools to the model."""
        return self.name != "sentinel"

    @property
    def is_held(self) -> bool:
        """The turn stays open until the client sends results."""
        return self.name == "held"

    def has(self, version: Version) -> bool:
        return _has(version, self.since, self.until)


TIERS: tuple[Tier, ...] = (
    Tier(
        name="replay",
        number=0,
        since=Version(0, 145),
        words="native calls; every request brings the whole conversation, and no turn stays open",
    ),
    Tier(
        name="held",
        number=1,
        since=Version(0, 92),
        words="native calls; a turn with open calls waits for the client's results",
    ),
    Tier(
        name="sentinel",
        number=2,
        since=_FROM_SOURCE,
        words="no native calls: the model is told in words how to write them, and they are read out of its text",
    ),
)
BY_NAME = {tier.name: tier for tier in TIERS}


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


def abilities_of(version: Version) -> Abilities:
    return Abilities(**{name: _has(version, since, UNTIL.get(name)) for name, since in SINCE.items()})


def tier_for(version: Version, wanted: str = "auto") -> Tier:
    """The best tier of this version, or the configured one."""
    if wanted in ("auto", "mcp"):  # the tier "mcp" was removed; old configurations may still have it
        return next(tier for tier in TIERS if tier.has(version))
    tier = next((tier for tier in TIERS if tier.name == wanted), None)
    if tier is None:
        raise ConfigError(f"found {quote(wanted)}; expected one of {', '.join(WANTED)}.", where="tier")
    if not tier.has(version):
        raise ConfigError(
            f"Codex {version} has no tier {quote(wanted)}; it is there {_range(tier)}.",
            where="tier",
            hint=f"Set it to auto, which is {tier_for(version).name} here, or install another version of Codex.",
        )
    return tier


def _has(version: Version, since: Version, until: Version | None) -> bool:
    """A build from source has what the newest release has."""
    if version == _FROM_SOURCE:
        return until is None
    return version >= since and (until is None or version[:2] <= until[:2])


def _range(tier: Tier) -> str:
    since = f"from {tier.since.major}.{tier.since.minor}"
    return since if tier.until is None else f"{since} to {tier.until.major}.{tier.until.minor}"
