"""Stored interactions: read, followed, cancelled and deleted, each by its owner alone."""

from __future__ import annotations

from ...backends.mounts import Receive
from ...dialects.interactions import state
from ...dialects.interactions.shapes import NAME
from ...errors import BadRequest, quote
from ...memory.answers import AnswerMemory
from ...memory.store import Entry
from ...wire.exact_json import decode
from ..reply import Reply, WrongMethod
from .answers import Stored
from .background import shown
from .query import StateQuery

_LAST_NUMBER = 1 << 31


class Interactions:
    def __init__(self, memory: AnswerMemory, stored: Stored) -> None:
        self._store = memory.store
        self._stored = stored

    async def answer(self, asked: StateQuery, reply: Reply, receive: Receive) -> None:
        is_cancel = len(asked.path) == 3
        method = "GET" if asked.method == "HEAD" else asked.method
        allowed = ("POST",) if is_cancel else ("GET", "DELETE")
        if method not in allowed:
            raise WrongMethod(asked.method, ", ".join(allowed))
        entry = await self._store.get(asked.owner, asked.path[1])
        if entry is None or entry.kind != NAME:
            raise _not_found(asked.path[1])
        if is_cancel:
            await reply.json(shown(await self._stored.cancel(entry)))
        elif method == "DELETE":
            await self._stored.delete(entry)
            await reply.json(b"{}")
        elif asked.word("stream") == "true":
            after = asked.number("last_event_id", -1, 0, _LAST_NUMBER)
            await self._stored.stream(entry, after, _replay, reply, receive)
        else:
            body = shown(await self._stored.current(entry))
            if asked.word("include_input") == "true":
                body = body[:-1] + b',"input":' + entry.input + b"}"
            await reply.json(body)


def _replay(entry: Entry, after: int) -> bytes:
    return state.replay(decode(shown(entry)), after)


def _not_found(name: str) -> BadRequest:
    return BadRequest(
        f"there is no stored interaction {quote(name)}; expected the id of one that was stored for this key.",
        status=404,
        code="not_found",
    )
