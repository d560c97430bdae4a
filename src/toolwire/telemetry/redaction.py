"""Secrets out of what is written down: by the names of members, by the form that keys have, and those that the owner gave us."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..types import Json

HIDDEN = "[hidden]"
_NAMES = re.compile(
    r"(?:^|[_.-])(?:api[_-]?)?key$|apikey|token$|secret|passw|credential|authorization|(?:^|[_-])auth$|cookie|signature$",
    re.IGNORECASE,
)
_NOT_SECRET = frozenset({"prompt_cache_key"})
_FORMS = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abp]|glpat)[-_][\w-]{6,}|\bAIza[\w-]{20,}|\bAKIA[A-Z0-9]{12,}"
    r"|\beyJ[\w-]{10,}[\w.-]*|(?i:\b(?:bearer|basic)\s+)[\w.~+/-]{6,}=*"
)
_LEAST = 8  # anything shorter is a word that may stand there by chance
_LONGEST_TEXT = 20_000  # of one text; a picture says no more in full
_KEPT = 2_000


class Redaction:
    """known: secrets that must not appear, wherever they stand."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        found = {secret for secret in known if len(secret) >= _LEAST}
        self._known = sorted(found, key=len, reverse=True)  # one may be the beginning of another

    def text(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        text = _FORMS.sub(HIDDEN, text)
        if len(text) <= _LONGEST_TEXT:
            return text
        return f"{text[:_KEPT]}... {len(text) - _KEPT} more characters"

    def value(self, value: Json, name: str = "") -> Json:
        match value:
            case str():
                return HIDDEN if value and is_secret(name) else self.text(value)
            case Mapping():
                return {self.text(key): self.value(item, key) for key, item in value.items()}
            case list() | tuple():
                return [self.value(item, name) for item in value]
            case _:
                return value


def is_secret(name: str) -> bool:
    """Whether what is called so is not to be shown."""
    return name not in _NOT_SECRET and _NAMES.search(name) is not None
