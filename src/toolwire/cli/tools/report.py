"""What a list of tools costs, which of its tools are the same, and which names are easy to confuse."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ...calls.search.selection import token_cost
from ...calls.tools.names import LONGEST, fit_name, is_legal
from ...types import JsonObject, Tool


class ToolLine(Struct, frozen=True, kw_only=True):
    """One tool. tokens: an estimate by length."""

    name: str
    tokens: int
    description: str = ""


class ToolsReport(Struct, frozen=True, kw_only=True):
    """duplicates: tools with the same description and schema. conflicts: different servers have a tool of this name. illegal: names that
    many back ends refuse, each with the one that the gateway uses instead."""

    tools: tuple[ToolLine, ...]
    tokens: int
    duplicates: tuple[tuple[str, ...], ...] = ()
    conflicts: tuple[tuple[str, ...], ...] = ()
    illegal: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> JsonObject:
        found: JsonObject = msgspec.to_builtins(self)
        return found


def report_of(tools: Iterable[Tool]) -> ToolsReport:
    tools = tuple(tools)
    lines = tuple(
        ToolLine(name=tool.name, tokens=token_cost(tool), description=" ".join((tool.description or "").split()))
        for tool in tools
    )
    return ToolsReport(
        tools=lines,
        tokens=sum(line.tokens for line in lines),
        duplicates=_groups((_content(tool), tool.name) for tool in tools),
        conflicts=_groups((_bare(tool.name), tool.name) for tool in tools),
        illegal=tuple((tool.name, fit_name(tool.name)) for tool in tools if not is_legal(tool.name, LONGEST)),
    )


def _groups(pairs: Iterable[tuple[str | bytes, str]]) -> tuple[tuple[str, ...], ...]:
    """Names with the same key, where there are several."""
    found: dict[str | bytes, list[str]] = {}
    for key, name in pairs:
        if key:
            found.setdefault(key, []).append(name)
    return tuple(tuple(names) for names in found.values() if len(names) > 1)


def _content(tool: Tool) -> bytes:
    if not tool.description and not tool.schema:
        return b""
    return msgspec.json.encode((tool.description, tool.schema), order="deterministic", enc_hook=str)


def _bare(name: str) -> str:
    """Without the server, and without separators and capitals, as models confuse names."""
    own = name.rpartition("__")[2] or name
    return "".join(letter for letter in own.lower() if letter.isalnum())
