"""VS Code bridge: maps tool names to those that Copilot accepts (letters, digits, _ and -, at most 64), and back.

The mapping depends on the name alone, so that a conversation is stable when other tools change; only a collision adds a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

LONGEST = 64
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_MARK = 8  # letters of a hash


class VSCodeToolNames:
    """Names of the client's tools and those sent to VS Code. Names without a tool are mapped in the same way."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._client: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=_is_illegal):  # those that keep their names come first
            self._add(name)

    def wire(self, name: str) -> str:
        """The name that is sent to VS Code."""
        return self._wire.get(name) or _written(name)

    def client(self, name: str) -> str:
        """The client's own name for it; one that is not ours stays as it is."""
        return self._client.get(name, name)

    def _add(self, name: str) -> None:
        written, tries = _written(name), 0
        while written in self._client:
            tries += 1
            written = _marked(f"{name}\n{tries}")
        self._wire[name] = written
        self._client[written] = name


def _is_illegal(name: str) -> bool:
    return _LEGAL.match(name) is None


def _written(name: str) -> str:
    return _marked(name) if _is_illegal(name) else name


def _marked(name: str) -> str:
    """The legal characters of it, followed by a hash of the whole name."""
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{_ILLEGAL.sub('_', name[: LONGEST - _MARK - 1])}_{mark}"
