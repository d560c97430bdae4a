"""Calls that need the client's approval: the client gets them like calls of its own tools, and decides with the result.

A result with the text `toolwire:approve` makes the gateway run the call, and the model gets the real result; `toolwire:deny` tells the model
that the user refused. Any other result is used as it is. The client's history has the decision, never the real result, so results are
stored here for the following requests. A call is run once: an approval that is not in the last messages of the request never runs anything.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeAlias

from msgspec.structs import replace

from ...tools.base import Output
from ...types import Media, Message, Part, Text, ToolCall, ToolResult
from .offer import MountedOffer, MountedTool

APPROVE = "toolwire:approve"
DENY = "toolwire:deny"
_DENIED = "The user did not allow this call, and it was not made."
_FORGOTTEN = "The user approved this call earlier; its result is no longer stored. Call again if you need it."
_MOST = 1000
_MOST_BYTES = 64 << 20

Run: TypeAlias = Callable[[MountedTool, ToolCall], Awaitable[Output]]


class ApprovedCalls:
    """Results of approved calls: an LRU cache by owner, id and content of the call."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._tasks: OrderedDict[str, asyncio.Task[Output]] = OrderedDict()

    async def applied(
        self, messages: tuple[Message, ...], offer: MountedOffer, owner: str, run: Run
    ) -> tuple[Message, ...]:
        """The messages with the results of the calls that the client has decided about; the same object if there are none."""
        calls = _calls(messages, offer) if _has_decision(messages) else {}
        if not calls:
            return messages
        last = max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
        found = list[Message]()
        for place, message in enumerate(messages):
            parts = list[Part]()
            for part in message.parts:
                if isinstance(part, ToolResult) and (call := calls.get(part.call_id)) is not None:
                    part = await self._decided(part, call, owner, run if place > last else None, offer)
                parts.append(part)
            is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
            found.append(message if is_same else message.with_parts(tuple(parts)))
        return tuple(found)

    async def _decided(
        self, result: ToolResult, call: ToolCall, owner: str, run: Run | None, offer: MountedOffer
    ) -> ToolResult:
        decision = _text(result)
        if decision == DENY:
            return replace(result, parts=(Text(text=_DENIED),), is_error=True)
        if decision != APPROVE:
            return result
        key = sha256("\0".join((owner, call.id, call.name, call.raw)).encode("utf-8", "surrogatepass")).hexdigest()
        task = self._tasks.get(key)
        if task is None and run is not None:
            # A client that disconnects does not interrupt what it has approved: it finds the result when it asks again.
            task = self._tasks[key] = asyncio.ensure_future(run(offer.tools[call.name], call))
        if task is None:
            return replace(result, parts=(Text(text=_FORGOTTEN),), is_error=True)
        self._tasks.move_to_end(key)
        output = await asyncio.shield(task)
        self._evict()
        return replace(result, parts=output.parts, is_error=output.is_error)

    def _evict(self) -> None:
        """Removes the oldest results; running calls stay."""
        done = [(key, task) for key, task in self._tasks.items() if task.done()]
        total, count = sum(_size(task) for _, task in done), len(self._tasks)
        for key, task in done[:-1]:
            if total <= self._most_bytes and count <= _MOST:
                return
            total, count = total - _size(task), count - 1
            del self._tasks[key]


def _has_decision(messages: tuple[Message, ...]) -> bool:
    return any(
        isinstance(part, ToolResult) and _text(part) in (APPROVE, DENY)
        for message in messages
        if message.role in ("tool", "user")
        for part in message.parts
    )


def _calls(messages: tuple[Message, ...], offer: MountedOffer) -> dict[str, ToolCall]:
    """Calls of tools that are returned to the client, by id."""
    return {
        part.id: part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
        and not part.namespace
        and (mounted := offer.tools.get(part.name)) is not None
        and mounted.is_returned
    }


def _text(result: ToolResult) -> str:
    """ "" unless it has nothing but one text."""
    only = result.parts[0] if len(result.parts) == 1 else None
    return only.text.strip() if isinstance(only, Text) else ""


def _size(task: asyncio.Task[Output]) -> int:
    if task.cancelled() or task.exception() is not None:
        return 0
    return sum(
        len(part.text) if isinstance(part, Text) else len(part.data or "") if isinstance(part, Media) else 0
        for part in task.result().parts
    )
