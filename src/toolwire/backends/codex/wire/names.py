"""Codex app-server: maps names of clients' tools to names that Codex accepts, and back.

Codex refuses requests with some names (`mcp`, `mcp__...`), and silently skips a tool whose name is reserved or belongs to a built-in
tool. Such tools get a prefix, and calls of them are mapped back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PREFIX = "client_"
_SKIPPED = re.compile(r"\bskipping .{0,100}\btool\b.{0,200}\btool_name=\"?([\w.:-]{1,200})")
# Skipped by 0.147 and later even if no tool of Codex has the name: 0.166.0 was offered every identifier in its own sources.
RESERVED = frozenset({"exec_command", "shell_command"})
# Tools of Codex itself, in any version. Not complete: tools that Codex skips, according to its log, are added at run time.
BUILT_IN = RESERVED.union(
    re.findall(
        r"\w+",
        "apply_patch create_goal get_goal list_mcp_resource_templates list_mcp_resources read_mcp_resource "
        "request_user_input shell tool_search update_goal update_plan view_image web_search write_stdin",
    )
)


class CodexToolNames:
    """Maps names of the client's tools to names in Codex, and back. Names without a tool are mapped in the same way.

    reserved: names that Codex does not offer to the model for a client. The pipeline has made all names legal, and short enough for
    the prefix.
    """

    def __init__(self, names: Iterable[str] = (), reserved: frozenset[str] = frozenset()) -> None:
        self._reserved = reserved
        self._client: dict[str, str] = {}
        for name in sorted(dict.fromkeys(names), key=self._is_reserved):  # unchanged names come first
            wire = self._renamed(name)
            while wire in self._client:
                wire += "_"
            self._client[wire] = name
        self._wire = {name: wire for wire, name in self._client.items()}

    def __contains__(self, wire: str) -> bool:
        return wire in self._client

    def __len__(self) -> int:
        return len(self._client)

    def wire(self, name: str) -> str:
        """The name in Codex."""
        return self._wire.get(name) or self._renamed(name)

    def client(self, wire: str) -> str:
        """The client's name; a name that is not a client's stays as it is."""
        return self._client.get(wire, wire)

    def _is_reserved(self, name: str) -> bool:
        return name == "mcp" or name.startswith("mcp__") or name in self._reserved

    def _renamed(self, name: str) -> str:
        return _PREFIX + name if self._is_reserved(name) else name


def skipped_tool(line: str) -> str:
    """The name of a tool that Codex skipped, from a line of its log (0.147 and later); "" for other lines."""
    found = _SKIPPED.search(line)
    return re.split(r"[.:]", found[1])[-1] if found else ""
