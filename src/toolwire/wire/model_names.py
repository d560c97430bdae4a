"""Model names as clients write them: the model itself, and what is only spelling, date or option.

Two names mean one model if their stems are equal. A stem has no case, no date, no provider before it, and a dash where a version
has a dot. What may be left out of a name beyond that is a closed list, so that no name ever comes to mean another model:
`[1m]`, `:thinking` and the like, an effort, and the `-codex` of a version. Only the name that is asked for is shortened so; a
name that is listed stays whole.
"""

from __future__ import annotations

import re
from collections.abc import Container

from msgspec import Struct

EFFORTS = ("minimal", "low", "medium", "high", "xhigh")

_LONGEST = 200
# Prefixes before a slash. "models" is a folder and no provider.
_PROVIDERS = {
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "google",
    "meta-llama": "meta",
    "mistralai": "mistral",
    "models": "",
    "moonshotai": "moonshot",
    "openai": "openai",
    "qwen": "qwen",
    "x-ai": "xai",
    "z-ai": "zai",
}
# As in "us.anthropic.claude-sonnet-4-5-20250929-v1:0".
_DOTTED = re.compile(r"(?:(?:apac|au|eu|global|jp|us)\.)?(anthropic|deepseek|meta|mistral|openai|qwen)\.(?=[a-z])")
_REVISION = re.compile(r"-v\d{1,2}(?::\d{1,2})?$")
_DATE = re.compile(
    r"[-@](20\d\d)(?:(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])|-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))$", re.ASCII
)
_LATEST = re.compile(r"[-:@]latest$")
_DOT = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})(?![\d.a-z])", re.ASCII)
_EFFORT = "|".join(EFFORTS)
_SUFFIX = re.compile(
    rf"\[\d{{1,4}}[km]\]$|:(?:beta|exacto|extended|floor|free|nitro|thinking)$"
    rf"|(?::({_EFFORT})|\(({_EFFORT})\)|\[({_EFFORT})\]|-({_EFFORT}))$",
    re.ASCII,
)
_SUFFIXES = 3
_CODEX = re.compile(r"(gpt-\d{1,2}(?:-\d{1,2})?)-codex$", re.ASCII)


class Spelling(Struct, frozen=True):
    """date is digits, "" for none; provider "" fits any; plain is the name in small letters without its provider."""

    stem: str
    date: str = ""
    provider: str = ""
    effort: str = ""
    plain: str = ""

    def fits(self, other: Spelling) -> bool:
        """Whether a name of the same stem may mean this one: not another snapshot, not another provider's."""
        return (not self.date or not other.date or self.date == other.date) and (
            not self.provider or not other.provider or self.provider == other.provider
        )


def spelling_of(name: str) -> Spelling | None:
    """The spelling of a listed name; None for one that no other spelling can mean."""
    return _spelled(*_begun(name.lower()), "") if _is_readable(name) else None


def readings_of(name: str, backends: Container[str]) -> list[Spelling]:
    """Possible meanings of a name, the nearest first; none if it begins with the name of a back end."""
    if not _is_readable(name) or ("/" in name and name.lower().partition("/")[0] in backends):
        return []
    plain, provider, is_dotted = _begun(name.lower())
    effort = ""
    readings = [_spelled(plain, provider, is_dotted, effort)]
    for _ in range(_SUFFIXES):
        found = _SUFFIX.search(plain)
        if found is None or not found.start() or not _may_go(found, plain, effort):
            break
        plain, effort = plain[: found.start()], effort or _effort_in(found)
        readings.append(_spelled(plain, provider, is_dotted, effort))
    return readings + [_without_codex(one, match[1]) for one in readings if (match := _CODEX.match(one.stem))]


def is_adorned(name: str) -> bool:
    """Whether a back end may know the model by a shorter name."""
    readings = readings_of(name, ())
    return len(readings) > 1 or any(one.date or one.provider or one.plain != name.lower() for one in readings)


def _is_readable(name: str) -> bool:
    return 0 < len(name) <= _LONGEST and name.isascii()


def _begun(text: str) -> tuple[str, str, bool]:
    """The name after its provider, the provider, and whether a dot separates them."""
    start, slash, rest = text.partition("/")
    if slash and rest and start in _PROVIDERS:
        return rest, _PROVIDERS[start], False
    dotted = _DOTTED.match(text)
    return (text[dotted.end() :], dotted[1], True) if dotted else (text, "", False)


def _spelled(plain: str, provider: str, is_dotted: bool, effort: str) -> Spelling:
    stem = _REVISION.sub("", plain) if is_dotted else plain
    stem = _LATEST.sub("", stem) or stem
    date = _DATE.search(stem)
    digits = ""
    if date is not None and date.start():
        stem, digits = stem[: date.start()], "".join(filter(None, date.groups()))
    return Spelling(_DOT.sub(r"\1-\2", stem), digits, provider, effort, plain)


def _may_go(found: re.Match[str], plain: str, effort: str) -> bool:
    """Only one effort; and after a dash it is an effort only if a version precedes it, because "mistral-medium" is a model."""
    if effort and _effort_in(found):
        return False
    return found[4] is None or any(letter.isdigit() for letter in plain[: found.start()])


def _effort_in(found: re.Match[str]) -> str:
    return next(filter(None, found.groups()), "")


def _without_codex(reading: Spelling, stem: str) -> Spelling:
    return Spelling(stem, reading.date, reading.provider, reading.effort, reading.plain)
