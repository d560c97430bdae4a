"""Codex app-server: names that its tools may have, and back. Some are reserved, and a built-in tool hides one of its own name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

_LEGAL = re.compile(r"[a-zA-Z0-9_-]+\Z")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_RESERVED = "mcp__"
_PREFIX = "client_"
_LONGEST = 64  # letters that every provider takes
_MARK = 8  # letters of a hash
# Tools that a version may offer by itself, whatever the settings.
BUILT_IN = frozenset(
    [
        "apply_patch",
        "exec_command",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_mcp_resource",
        "request_user_input",
        "shell",
        "shell_command",
        "update_plan",
        "view_image",
        "web_search",
        "write_stdin",
    ]
)


class Names:
    """The client's names of its tools, and what Codex knows them by; a name that no tool has is written in the same way.

    taken are names of built-in tools. bridge is the MCP server that offers the tools, "" where Codex does so itself.
    """

    def __init__(self, names: Iterable[str] = (), taken: frozenset[str] = frozenset(), bridge: str = "") -> None:
        self._taken = taken
        self.bridge = bridge
        self._written: dict[str, str] = {}
        self._known: dict[str, str] = {}
        given = list(dict.fromkeys(names))
        for name in sorted(given, key=self._needs_change):  # those that keep their names come first
            written = self._unique(name)
            self._written[name] = written
            self._known[written] = name

    def __contains__(self, written: str) -> bool:
        return written in self._known

    def __len__(self) -> int:
        return len(self._known)

    def written(self, name: str) -> str:
        found = self._written.get(name)
        return self._changed(name) if found is None and self._needs_change(name) else found or name

    def known(self, written: str) -> str:
        """The client's own name; one that is not ours stays as it is."""
        return self._known.get(written, written)

    def _needs_change(self, name: str) -> bool:
        return bool(self.bridge) or name in self._taken or name.startswith(_RESERVED) or _LEGAL.match(name) is None

    def _changed(self, name: str) -> str:
        if self.bridge:
            return f"{_RESERVED}{self.bridge}__{name}"
        written = _PREFIX + _ILLEGAL.sub("_", name)
        return written if len(written) <= _LONGEST else _marked(written, name)

    def _unique(self, name: str) -> str:
        if not self._needs_change(name):
            return name
        written = self._changed(name)
        return _marked(written, name) if written in self._known else written


def _marked(written: str, name: str) -> str:
    """Shortened, with a hash of the client's whole name behind it."""
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{written[: _LONGEST - _MARK - 1]}_{mark}"
