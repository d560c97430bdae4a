"""Requests in: a cache of tool lists, which recur in every request of a conversation and are often most of it.

A list is found by its bytes at the same position, counted from the start of the body or from its end: clients write it before the messages
or after them, and one of the two positions stays. A placeholder replaces it before the body is decoded. Where the placeholder is then the
member `tools` of the body, the bytes were that member and nothing else; in any other case the whole body is decoded.

The decoded JSON of a list is shared by the requests that have it, so no caller may change it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...errors import BadRequest
from ...types import JsonObject, RecurringTools, Tool
from ...wire.fields import body_object

_MOST_LISTS = 64
_MAX_BYTES = 8 << 20
_PLACEHOLDER = "toolwire: a tool list that is known"
_ENCODED = msgspec.json.encode(_PLACEHOLDER)


class _Body(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw(b"")


_decoder = msgspec.json.Decoder(_Body)


class _KnownList(msgspec.Struct, frozen=True):
    """start and after: bytes of the body before and after the list. tools: as each dialect reads them."""

    wire: bytes
    start: int
    after: int
    value: list[Any]
    tools: dict[str, RecurringTools] = msgspec.field(default_factory=dict)

    def position_in(self, body: bytes) -> int:
        """-1 where it is at neither position."""
        if body.startswith(self.wire, self.start):
            return self.start
        start = len(body) - self.after - len(self.wire)
        return start if start >= 0 and body.startswith(self.wire, start) else -1


class ToolListCache:
    """An LRU cache. Each change replaces the tuple, so that threads that decode large bodies need no lock."""

    def __init__(self) -> None:
        self._lists: tuple[_KnownList, ...] = ()  # the last used first
        self._by_id: dict[int, _KnownList] = {}  # by the identity of the decoded list

    def decode(self, body: bytes) -> JsonObject:
        """The object that the body is. Raises BadRequest."""
        known, start = self._find(body)
        if known is not None:
            try:
                top = body_object(body[:start] + _ENCODED + body[start + len(known.wire) :])
            except BadRequest:
                return body_object(body)
            if top.get("tools") == _PLACEHOLDER:
                top["tools"] = known.value
                return top
        top = body_object(body)
        listed = top.get("tools")
        if isinstance(listed, list) and listed:
            self._add(body, listed)
        return top

    def known(self, top: JsonObject, dialect: str) -> tuple[Tool, ...] | None:
        """The tools of the list of this body: () without one, None for a list that is new to the dialect."""
        listed = top.get("tools")
        if listed is None:
            return ()
        found = self._by_id.get(id(listed))
        return None if found is None else found.tools.get(dialect)

    def tools(self, listed: list[Any], dialect: str, read: Callable[[list[Any]], tuple[Tool, ...]]) -> tuple[Tool, ...]:
        """The tools of a list, read once where the list is known. read must not depend on anything else than the list."""
        found = self._by_id.get(id(listed))
        if found is None:
            return read(listed)
        tools = found.tools.get(dialect)
        if tools is None:
            tools = found.tools[dialect] = RecurringTools(read(listed))
        return tools

    def __len__(self) -> int:
        return len(self._lists)

    def _find(self, body: bytes) -> tuple[_KnownList | None, int]:
        lists = self._lists
        for place, known in enumerate(lists):
            if (start := known.position_in(body)) >= 0:
                if place:
                    self._lists = (known, *lists[:place], *lists[place + 1 :])
                return known, start
        return None, -1

    def _add(self, body: bytes, listed: list[Any]) -> None:
        try:
            wire = bytes(_decoder.decode(body).tools)
        except (msgspec.DecodeError, RecursionError):  # with lone surrogates, or nested too deeply for this decoder
            return
        if len(wire) > _MAX_BYTES // 4:  # one list must not evict all others
            return
        start = body.find(wire)
        lists = [_KnownList(wire, start, len(body) - start - len(wire), listed), *self._lists[: _MOST_LISTS - 1]]
        while sum(len(known.wire) for known in lists) > _MAX_BYTES:
            lists.pop()
        self._lists, self._by_id = tuple(lists), {id(known.value): known for known in lists}


TOOL_LISTS = ToolListCache()  # of the process
