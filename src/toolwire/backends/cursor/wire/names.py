"""Tool names for the service, and back. The model reads mcp_PROVIDER_NAME, and the server returns a name in one of several forms.

The name on the wire depends only on the client's name, so that a conversation keeps its bytes when tools come and go. A name gets a
prefix if a built-in tool has it, if it looks like one of our forms, or if its characters or its length are not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from ....types import Tool

PROVIDER = "tw"
MAX_LENGTH = (
    57  # then mcp_tw_NAME has 64 characters, and tw with a name 60: the service drops longer ones silently (H055)
)
PREFIX = "client_"
# Built-in tools, in any spelling. A tool of the same name is refused by the provider, or hides the built-in one.
BUILT_IN = frozenset(
    ["delete", "edit", "glob", "grep", "ls", "read", "shell", "todowrite", "webfetch", "websearch", "write"]
)
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATORS = re.compile(r"[\W_]+")
_FORM = re.compile(rf"(?:user[-_.:/]{{1,2}})?(?:mcp[-_.:/]{{1,2}})?{PROVIDER}[-_.:/]{{1,2}}", re.IGNORECASE)
_BARE_FORM = re.compile(r"mcp[-_.:/]{1,2}", re.IGNORECASE)
_HASH_LENGTH = 8
_MAX_NESTING = 3  # forms around forms
_MAX_LOOSE = 256  # characters of a name that is looked up by other spellings


class WireNames:
    """The client's names of its tools, and those that the server knows. Names of no tool are encoded in the same way."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._client: dict[str, str] = {}
        self._loose: dict[str, str | None] | None = None
        for name in names:
            if name not in self._wire:
                self._add(name)

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> WireNames:
        return cls(tool.name for tool in tools)

    def __len__(self) -> int:
        return len(self._wire)

    def wire(self, name: str) -> str:
        return self._wire.get(name) or _encode(name)

    def client(self, name: str, tool_name: str = "") -> str | None:
        """The client's name for the server's; tool_name takes precedence. None if no tool has it."""
        forms = [form for text in (tool_name, name) if text for form in _forms(text) if form]
        for known in (self._client, {form: form for form in forms if form in self._wire}, self._spellings(forms)):
            found = next((known[form] for form in forms if form in known), None)
            if found is not None:
                return found
        return None

    def _add(self, name: str) -> None:
        encoded, tries = _encode(name), 0
        while encoded in self._client:
            tries += 1
            encoded = _hashed(name, tries)
        self._wire[name] = encoded
        self._client[encoded] = name

    def _spellings(self, forms: list[str]) -> dict[str, str]:
        """Forms that differ only in case and separators from a name that one tool has."""
        if self._loose is None:
            self._loose = {}
            for encoded, name in self._client.items():
                for key in {_normalized(encoded), _normalized(name)}:
                    self._loose[key] = name if self._loose.get(key, name) == name else None
        short = [form for form in forms if len(form) <= _MAX_LOOSE]
        return {form: found for form in short if (found := self._loose.get(_normalized(form))) is not None}


def _encode(name: str) -> str:
    if _ILLEGAL.search(name) or not name or len(name) > MAX_LENGTH:
        return _hashed(name)
    is_like_ours = name.startswith((PREFIX, "_", "-")) or bool(_FORM.match(name))
    if not is_like_ours and _SEPARATORS.sub("", name).lower() not in BUILT_IN:
        return name
    return PREFIX + name if len(PREFIX + name) <= MAX_LENGTH else _hashed(name)


def _hashed(name: str, tries: int = 0) -> str:
    """Shortened, with a hash of the client's whole name."""
    key = f"{name}\n{tries}" if tries else name
    digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=_HASH_LENGTH // 2).hexdigest()
    return f"{(PREFIX + _ILLEGAL.sub('_', name[:MAX_LENGTH]))[: MAX_LENGTH - _HASH_LENGTH - 1]}_{digest}"


def _forms(text: str) -> list[str]:
    """The name as it is, and without the prefixes that the server or a model adds."""
    forms = [text]
    for _ in range(_MAX_NESTING):
        match = _FORM.match(forms[-1])
        if match is None or match.end() == len(forms[-1]):
            break
        forms.append(forms[-1][match.end() :])
    return forms if len(forms) > 1 else [*forms, _BARE_FORM.sub("", text, count=1)]


def _normalized(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").lower()
