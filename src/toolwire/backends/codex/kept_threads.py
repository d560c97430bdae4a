"""Threads that wait between the requests of one conversation, so that all of them have one prompt cache key.

Codex sends the id of a thread as `prompt_cache_key`, and nothing else can set it; with a thread for each request the provider's prompt
cache finds nothing. So a thread whose answer is complete stays. What was put into it before its turn is its floor. The next request
takes the thread back to its floor, which drops the turn, and puts in only what comes after it.

A request may take a thread only if it would start the same one (model, tools, instructions, settings, owner and the client's own
cache key) and its conversation begins with the floor, item by item: a conversation that was edited begins a new thread. A
thread is used by one request at a time.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b

from msgspec import Struct

from ...types import Json, Request
from ...wire.exact_json import encode
from ..continuation import ResumePoint
from ..sessions import Parking, SessionLost
from .wire.request_out import ThreadOpening, cache_key
from .worker import AppServerWorker, RequestRefused, Thread

SECONDS = 600.0  # providers keep a prompt for some minutes
MOST = 64  # threads; each takes about 2 MB of Codex's memory
MOST_USES = 50  # requests of one thread; 0.166 takes 5 ms longer for each time that it was taken back
_REVERTING = 10.0  # seconds; it takes some 25 ms


class StoredThread(Struct, eq=False):
    """A thread and how to take it back: turn_id is the turn to drop, count the items of its floor. uses: requests so far. resting
    ends when the turn has."""

    worker: AppServerWorker
    thread: Thread
    turn_id: str
    count: int
    uses: int
    resting: asyncio.Task[None]

    async def take_back(self) -> bool:
        """The thread is at its floor; False where Codex does not do it, and another thread has to be begun."""
        await asyncio.wait([self.resting])
        try:
            params = {"threadId": self.thread.id, "beforeTurnId": self.turn_id}
            await self.worker.ask("thread/revert", params, _REVERTING)
        except (SessionLost, RequestRefused, TimeoutError):
            return False
        self.thread.ready()  # what was said of earlier turns
        return True


def places_of(opening: ThreadOpening, request: Request) -> list[ResumePoint]:
    """Where a thread for this request may wait: the place of the whole conversation first, then of ever less of it."""
    digest = blake2b(digest_size=16)
    _add(digest, [opening.params, opening.turn, cache_key(request)])
    places = []
    for item in opening.inject:
        _add(digest, item)
        places.append(ResumePoint(frozenset(), digest.hexdigest(), request.owner))
    return places[::-1]


def taken(kept: Parking[StoredThread], places: list[ResumePoint]) -> StoredThread | None:
    """The thread that has most of the conversation already."""
    for place in places:
        if (found := kept.take(place)) is not None:
            return found
    return None


def _add(digest: blake2b, value: Json) -> None:
    data = encode(value)
    digest.update(b"%d " % len(data))
    digest.update(data)
