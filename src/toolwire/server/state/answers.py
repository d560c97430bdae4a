"""Stored answers: only their owner can read, list, follow, cancel and delete them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeAlias

from ...backends.base import Backend, WireReply
from ...backends.mounts import Receive
from ...cluster.client import PeerLost
from ...cluster.node import ClusterNode
from ...dialects import BACKGROUNDS
from ...dialects.base import AnswerContext
from ...dialects.responses import DIALECT as RESPONSES
from ...dialects.responses.body_in import body_events
from ...dialects.responses.shapes import NAME
from ...dialects.responses.state import shown_item
from ...dialects.shared.model_field import Renamer
from ...errors import BadRequest, quote
from ...ids import new_id
from ...memory.answers import POINTERS, RUNNING, AnswerMemory
from ...memory.store import Entry, Item
from ...runtime import Runtime
from ...types import Request
from ...wire.exact_json import decode, encode
from ...wire.sse import SseReader
from ..exchange import while_here
from ..reply import EventStream, Reply, WrongMethod, passed_headers
from .background import Background, cancelled, heard_of, shown, with_status
from .query import StateQuery, page

Replay: TypeAlias = Callable[[Entry, int], bytes]

_POLL = 0.5
GRACE = 2.0  # seconds: two heartbeats
_MAX_RELAYED = 64 << 20
_LAST_NUMBER = 1 << 31
# Ids that are safe in the path of another server: no "..", no query, no line break.
_ID = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.:-]{0,199}")


class Stored:
    def __init__(
        self,
        runtime: Runtime,
        memory: AnswerMemory,
        background: Background,
        interval: float,
        cluster: ClusterNode | None = None,
    ) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._grace = GRACE
        self._memory = memory
        self._store = memory.store
        self._background = background
        self._interval = interval

    async def answer(self, asked: StateQuery, reply: Reply, receive: Receive) -> None:
        path = asked.path
        action = path[2] if len(path) == 3 else ""
        allowed = {"": "GET, DELETE", "input_items": "GET", "cancel": "POST"}
        if len(path) not in (2, 3) or (len(path) == 3 and action not in ("input_items", "cancel")):
            raise BadRequest("there is nothing at this path.", status=404, code="not_found")
        method = "GET" if asked.method == "HEAD" else asked.method
        if method not in allowed[action].split(", "):
            raise WrongMethod(asked.method, allowed[action])
        entry = await self._store.get(asked.owner, path[1])
        if entry is None or entry.kind != NAME:
            await while_here(receive, self._relay(asked, reply))
        elif action == "input_items":
            await reply.json(page(asked, _input_items(entry)))
        elif action == "cancel":
            await reply.json(shown(await self.cancel(entry)))
        elif method == "DELETE":
            await self.delete(entry)
            await reply.json(encode({"id": entry.id, "object": "response", "deleted": True}))
        elif asked.word("stream") == "true":
            after = asked.number("starting_after", -1, 0, _LAST_NUMBER)
            await self.stream(entry, after, replay, reply, receive)
        else:
            await reply.json(shown(await self.current(entry)))

    async def current(self, entry: Entry) -> Entry:
        """A running answer without a heartbeat has failed, unless one arrives soon: the store may have been down for a while."""
        if heard_of(entry, time.time()) is entry:
            return entry
        await asyncio.sleep(self._grace)
        entry = await self._store.get(entry.owner, entry.id) or entry
        current = heard_of(entry, time.time())
        if current is entry or await self._store.replace_running(current):
            return current
        return await self._store.get(entry.owner, entry.id) or current

    async def delete(self, entry: Entry) -> None:
        if (job := self._background.find(entry.owner, entry.id)) is not None:
            job.stop("cancelled", cancelled())
        await self._memory.delete(entry.owner, entry.id)

    async def cancel(self, entry: Entry) -> Entry:
        entry = await self.current(entry)
        if not decode(entry.body).get("background"):
            raise BadRequest(f"{quote(entry.id)} does not run in the background; expected one that does.")
        if entry.status in RUNNING:
            if not await self._store.replace_running(with_status(entry, "cancelled", None)):
                return await self.cancel(await self._store.get(entry.owner, entry.id) or entry)
            entry = with_status(entry, "cancelled", None)
            if (job := self._background.find(entry.owner, entry.id)) is not None:
                job.stop("cancelled", cancelled())
        elif entry.status != "cancelled":
            raise BadRequest(f"{quote(entry.id)} has ended already, as {entry.status}.")
        return entry

    async def stream(self, entry: Entry, after: int, replay: Replay, reply: Reply, receive: Receive) -> None:
        """after: the number of the last event that the client has, -1 for none. replay: the events of an answer that has ended."""
        job = self._background.find(entry.owner, entry.id)
        pieces = job.follow(after) if job is not None else self._elsewhere(entry, after, replay)
        stop = job.end_with_server if job is not None else None
        await while_here(receive, send_pieces(pieces, reply, self._interval), stop)

    async def _elsewhere(self, entry: Entry, after: int, replay: Replay) -> AsyncGenerator[bytes, None]:
        """The events of another process that has them; if there is none, or it is lost, what the store has."""
        if self._cluster is not None:
            number = re.compile(BACKGROUNDS[entry.kind].event_number)
            try:
                async for frames in _whole_frames(self._cluster.follow(entry.owner, entry.id, after)):
                    after = max(after, *map(int, number.findall(frames)), -1)
                    yield frames
                return
            except PeerLost:
                pass
        async for piece in self._replayed(entry, after, replay):
            yield piece

    async def _replayed(self, entry: Entry, after: int, replay: Replay) -> AsyncGenerator[bytes, None]:
        """Another process answers it, or none does any more: the events of the stored result."""
        current: Entry | None = entry
        while current is not None and (current := await self.current(current)).status in RUNNING:
            await asyncio.sleep(_POLL)
            current = await self._store.get(entry.owner, entry.id)
        if current is not None:
            yield replay(current, after)

    async def _keeper(self, pointer: Entry | None, answer_id: str) -> Backend | None:
        """The back end that stores this answer; an answer without a pointer may be older than this gateway."""
        names = [pointer.keeper] if pointer is not None else []
        if pointer is None and _ID.fullmatch(answer_id) and await self._memory.is_strange(answer_id):
            names = [name for name in self._memory.keepers if self._runtime.backends[name].dialect == NAME]
        return self._runtime.backends.get(names[0]) if len(names) == 1 else None

    async def _relay(self, asked: StateQuery, reply: Reply) -> None:
        """As the back end has it, but with the model's name that the client gave."""
        pointer = await self._memory.pointer(asked.owner, asked.path[1], NAME)
        backend = await self._keeper(pointer, asked.path[1])
        model = decode(pointer.body).get("model") if pointer is not None else None
        renamer = Renamer(NAME, model) if model else None
        path, query = "/" + "/".join(asked.path), asked.relayed_query()
        answer = None if backend is None else await backend.relay(asked.method, path, query, asked.headers)
        if answer is None:
            raise BadRequest(
                f"there is no stored response {quote(asked.path[1])}; expected the id of one that was stored for this key.",
                status=404,
                code="response_not_found",
                details={"type": "invalid_request_error"},
            )
        try:
            if "event-stream" in answer.content_type:
                await send_pieces(_frames(answer, renamer), reply, self._interval)
                return
            body = await _whole(answer)
        finally:
            if not answer.is_complete:
                answer.abort()
        if asked.method == "DELETE":
            await self._store.delete(POINTERS, asked.path[1])
        shown_body = renamer.body(body) if renamer is not None else body
        await reply.whole(200, shown_body, "application/json", passed_headers(answer.headers))


async def send_pieces(pieces: AsyncGenerator[bytes, None], reply: Reply, interval: float) -> None:
    """The generator is closed before this returns or raises, so that an upstream behind it is stopped at once."""
    stream = EventStream(asyncio.get_running_loop(), reply, interval)
    try:
        async with aclosing(pieces):
            async for wire in pieces:
                if wire:
                    await stream.write(wire)
        await stream.write(b"", is_last=True)
    finally:
        stream.close()


def replay(entry: Entry, after: int) -> bytes:
    """All events of an answer. A client that has some of them gets only the last one, which contains the whole answer: event numbers are not stored."""
    value = decode(shown(entry))
    if after >= 0:
        kind = f"response.{entry.status if entry.status != 'cancelled' else 'failed'}"
        last = {"type": kind, "sequence_number": after + 1, "response": value}
        return b"event: " + kind.encode() + b"\ndata: " + encode(last) + b"\n\n"
    request = Request(model=str(value.get("model")), messages=(), stream=True, origin=NAME, source=value)
    writer = RESPONSES.encoder(
        AnswerContext(request=request, mint=new_id, now=int(entry.created), is_kept=True, answer_id=entry.id)
    )
    return b"".join(writer.send(event) for event in body_events(request, value)[0])


def _input_items(entry: Entry) -> list[Item]:
    """Ids are derived from the id of the answer, so every request gets the same ones."""
    stem, items = entry.id.removeprefix("resp_"), list[Item]()

    def next_id(prefix: str) -> str:
        return f"{prefix}{stem}{len(items):04}"

    taken = set[str]()
    for item in decode(entry.input):
        listed = shown_item(item, next_id)
        if listed["id"] in taken:  # a page is found by the id before it, which must be one
            listed["id"] = next_id("item_")
        taken.add(listed["id"])
        items.append(Item(listed["id"], encode(listed)))
    return items


async def _frames(answer: WireReply, renamer: Renamer | None) -> AsyncGenerator[bytes, None]:
    reader = SseReader()
    while piece := await answer.read():
        frames = reader.feed(piece)
        yield b"".join([(frame if renamer is None else renamer.frame(frame)).raw for frame in frames])


async def _whole_frames(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Without a last frame that was cut."""
    held = bytearray()
    async for piece in pieces:
        start = max(0, len(held) - 1)
        held += piece
        if (end := held.rfind(b"\n\n", start)) >= 0:
            yield bytes(held[: end + 2])
            del held[: end + 2]


async def _whole(answer: WireReply) -> bytes:
    body = bytearray()
    while piece := await answer.read():
        body += piece
        if len(body) > _MAX_RELAYED:
            raise BadRequest("the back end's answer is too large to pass on.", status=502, code="upstream_garbage")
    return bytes(body)
