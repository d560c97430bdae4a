"""Codex app-server: names that its tools may have, and back.

Codex refuses a request with some names (`mcp`, `mcp__...`), and leaves a tool out without an answer where its name is reserved or
belongs to a built-in tool. Such tools get another name; calls of them are translated back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

_LEGAL = re.compile(r"[a-zA-Z0-9_-]+\Z")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_REFUSED = "mcp"
_REFUSED_PREFIX = "mcp__"
_PREFIX = "client_"
_LONGEST = 64  # letters that every provider takes
_MARK = 8  # letters of a hash
_SKIPPED = re.compile(r"\bskipping .{0,100}\btool\b.{0,200}\btool_name=\"?([\w.:-]{1,200})")
# Left out by 0.147 and later even where no tool of Codex has the name: 0.166.0 was offered every identifier in its own sources.
RESERVED = frozenset({"exec_command", "shell_command"})
# Tools that a version may offer by itself. Not complete: what Codex's log says it left out is added while it runs.
BUILT_IN = RESERVED | frozenset(
    [
        "apply_patch",
        "create_goal",
        "get_goal",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_mcp_resource",
        "request_user_input",
        "shell",
        "tool_search",
        "update_goal",
        "update_plan",
        "view_image",
        "web_search",
        "write_stdin",
    ]
)


class CodexToolNames:
    """The client's names of its tools, and what Codex knows them by; a name that no tool has is written in the same way.

    taken are names that Codex does not offer to the model for a client.
    """

    def __init__(self, names: Iterable[str] = (), taken: frozenset[str] = frozenset()) -> None:
        self._taken = taken
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
        is_refused = name == _REFUSED or name.startswith(_REFUSED_PREFIX)
        return is_refused or name in self._taken or _LEGAL.match(name) is None

    def _changed(self, name: str) -> str:
        written = _PREFIX + _ILLEGAL.sub("_", name)
        return written if len(written) <= _LONGEST else _marked(written, name)

    def _unique(self, name: str) -> str:
        if not self._needs_change(name):
            return name
        written = self._changed(name)
        return _marked(written, name) if written in self._known else written


def skipped_tool(line: str) -> str:
    """The name of a tool that Codex left out, from a line of its log (0.147 and later); "" where the line is about something else."""
    found = _SKIPPED.search(line)
    return re.split(r"[.:]", found[1])[-1] if found else ""


def _marked(written: str, name: str) -> str:
    """Shortened, with a hash of the client's whole name behind it."""
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_MARK // 2).hexdigest()
    return f"{written[: _LONGEST - _MARK - 1]}_{mark}"
