"""VS Code bridge: names that Copilot takes for tools, and back: letters, digits, _ and -, at most 64 of them.

What a name becomes depends on itself alone, so that a conversation keeps its words whatever tools come and go; only where two would
become the same does the later one get a number.
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
    """The client's names of its tools, and those that VS Code is told; a name that no tool has is written in the same way."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._wire: dict[str, str] = {}
        self._client: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=_is_illegal):  # those that keep their names come first
            self._add(name)

    def wire(self, name: str) -> str:
        """The name that VS Code is told."""
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
    """What can be read of it, with a hash of the whole behind."""
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{_ILLEGAL.sub('_', name[: LONGEST - _MARK - 1])}_{mark}"
