"""Cursor: names that the client's tools may have, and back. The model reads mcp_PROVIDER_NAME, and the server gives a name back in
any of several forms.

What a name becomes depends on itself alone, so that a conversation keeps its bytes whatever tools come and go. Names that a built-in
tool has, that look like one of our forms, or that have other letters or too many get a prefix; those that have the prefix get it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from ....types import Tool

PROVIDER = "tw"
LONGEST = 57  # mcp_tw_NAME has 64 letters then, and tw with a name 60: longer ones are dropped without a word (H055)
PREFIX = "client_"
# Built-in tools, however they are spelled. A tool of the same name is refused by the provider, or hides the built-in one.
BUILT_IN = frozenset(
    ["delete", "edit", "glob", "grep", "ls", "read", "shell", "todowrite", "webfetch", "websearch", "write"]
)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATORS = re.compile(r"[\W_]+")
_FORM = re.compile(rf"(?:user[-_.:/]{{1,2}})?(?:mcp[-_.:/]{{1,2}})?{PROVIDER}[-_.:/]{{1,2}}", re.IGNORECASE)
_BARE_FORM = re.compile(r"mcp[-_.:/]{1,2}", re.IGNORECASE)
_MARK = 8  # letters of a hash
_DEEPEST = 3  # forms around forms
_LONGEST_LOOSE = 256  # letters of a name that is looked for by other spellings


class Names:
    """The client's names of its tools, and those that the server knows; a name that no tool has is written in the same way."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._client: dict[str, str] = {}
        self._loose: dict[str, str | None] | None = None
        for name in names:
            if name not in self._wire:
                self._add(name)

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Names:
        return cls(tool.name for tool in tools)

    def __len__(self) -> int:
        return len(self._wire)

    def wire(self, name: str) -> str:
        """The name that the server is told."""
        return self._wire.get(name) or _written(name)

    def client(self, name: str, tool_name: str = "") -> str | None:
        """The client's own name for what the server calls name, or tool_name where it gives both; None if it has no such tool."""
        given = [text for text in (tool_name, name) if text]
        forms = [form for text in given for form in _forms(text) if form]
        for known in (self._client, {name: name for name in forms if name in self._wire}, self._spellings(forms)):
            found = next((known[form] for form in forms if form in known), None)
            if found is not None:
                return found
        return None

    def _add(self, name: str) -> None:
        written, tries = _written(name), 0
        while written in self._client:
            tries += 1
            written = _marked(name, tries)
        self._wire[name] = written
        self._client[written] = name

    def _spellings(self, forms: list[str]) -> dict[str, str]:
        """Forms that differ in case and separators alone from a name that only one tool has."""
        if self._loose is None:
            self._loose = {}
            for written, name in self._client.items():
                for key in {_spelled(written), _spelled(name)}:
                    self._loose[key] = name if self._loose.get(key, name) == name else None
        short = [form for form in forms if len(form) <= _LONGEST_LOOSE]
        return {form: found for form in short if (found := self._loose.get(_spelled(form))) is not None}


def _written(name: str) -> str:
    if _ILLEGAL.search(name) or not name or len(name) > LONGEST:
        return _marked(name)
    is_like_ours = name.startswith((PREFIX, "_", "-")) or bool(_FORM.match(name))
    if not is_like_ours and _SEPARATORS.sub("", name).lower() not in BUILT_IN:
        return name
    return PREFIX + name if len(PREFIX + name) <= LONGEST else _marked(name)


def _marked(name: str, tries: int = 0) -> str:
    """Shortened, with a hash of the client's whole name behind it."""
    key = f"{name}\n{tries}" if tries else name
    mark = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{(PREFIX + _ILLEGAL.sub('_', name[:LONGEST]))[: LONGEST - _MARK - 1]}_{mark}"


def _forms(text: str) -> list[str]:
    """As it is, and without what the server, or a model, puts before a name."""
    forms = [text]
    for _ in range(_DEEPEST):
        match = _FORM.match(forms[-1])
        if match is None or match.end() == len(forms[-1]):
            break
        forms.append(forms[-1][match.end() :])
    return forms if len(forms) > 1 else [*forms, _BARE_FORM.sub("", text, count=1)]


def _spelled(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").lower()
