"""Threads that are stored between the requests of one conversation, so that all requests have one prompt cache key.

Codex sends the id of a thread as `prompt_cache_key`; with a thread for each request the provider's prompt cache finds nothing. So a
thread is stored after its answer. The items that were injected before its turn are its floor. The next request reverts the thread to
its floor, which drops the turn, and injects only the new items.

A request may take a thread only if it would start the same one (model, tools, instructions, settings, owner and the client's own
cache key) and its conversation begins with the floor, item by item: an edited conversation starts a new thread. A thread is used by
one request at a time.

The key is the session id of the thread. No request sets it, but Codex reads it from the file of a thread when it loads the thread. So
for a client with a key of its own the gateway writes the session id into the file of a new thread, and has Codex reload it: thread/revert
does that, also when it refuses the turn. thread/resume reads the file, too, but a thread that it opens reports no raw items, so the end of
a response with several calls is unknown and the proofs of reasoning are lost.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from hashlib import blake2b

from msgspec import Struct

from ...types import Json, Request
from ...wire.exact_json import encode
from ..continuation import ResumePoint
from ..sessions import Parking, SessionLost
from .home import Home
from .wire.request_out import ThreadOpening, cache_key
from .worker import AppServerWorker, RequestRefused, Thread

STORED_SECONDS = 600.0  # providers cache a prompt for some minutes
MAX_THREADS = 64  # each takes about 2 MB of Codex's memory
MAX_USES = 50  # requests of one thread; in 0.166 each revert takes 5 ms longer than the one before
_REVERT_SECONDS = 10.0  # it takes some 25 ms
_NO_TURN = "00000000-0000-4000-8000-000000000000"  # thread/revert refuses it, after it has reloaded the thread
_KEYS = uuid.UUID("6f1c2a52-6f0b-5d3f-9a53-5e0f7a3b1c64")  # namespace of the session ids that stand for clients' keys


class StoredThread(Struct, eq=False):
    """turn_id: the turn to drop. stopping: the task that stops the turn."""

    worker: AppServerWorker
    thread: Thread
    turn_id: str
    stopping: asyncio.Task[None]

    async def revert(self) -> bool:
        """Reverts the thread to its floor. False if Codex refuses, and a new thread is necessary."""
        await asyncio.wait([self.stopping])
        try:
            params = {"threadId": self.thread.id, "beforeTurnId": self.turn_id}
            await self.worker.ask("thread/revert", params, _REVERT_SECONDS)
        except (SessionLost, RequestRefused, TimeoutError):
            return False
        self.thread.ready()  # messages of earlier turns
        return True


def places_of(opening: ThreadOpening, request: Request) -> list[ResumePoint]:
    """Where a thread for this request may be stored: for the whole conversation first, then for ever shorter prefixes."""
    digest = blake2b(digest_size=16)
    _add(digest, [opening.params, opening.turn, cache_key(request)])
    places = []
    for item in opening.inject:
        _add(digest, item)
        places.append(ResumePoint(frozenset(), digest.hexdigest(), request.owner))
    return places[::-1]


def session_of(key: str) -> str:
    """The session id for a client's cache key: the key itself if it is a UUID, else one that is the same for the same key."""
    with suppress(ValueError):
        if str(uuid.UUID(key)) == key:
            return key
    return str(uuid.uuid5(_KEYS, key))


async def set_session(worker: AppServerWorker, thread: Thread, session_id: str, home: Home) -> bool:
    """Gives a thread that has items, but no turn, another session id. Raises RequestRefused if the thread cannot be used any more,
    SessionLost or TimeoutError. False if its file has another form, and nothing was changed."""
    if not home.set_session(thread.path, thread.id, session_id):
        return False
    with suppress(RequestRefused):
        await worker.ask("thread/revert", {"threadId": thread.id, "beforeTurnId": _NO_TURN}, _REVERT_SECONDS)
    read = await worker.ask("thread/read", {"threadId": thread.id}, _REVERT_SECONDS)
    found = read.get("thread") if isinstance(read, dict) else None
    return isinstance(found, dict) and found.get("sessionId") == session_id


def take_thread(stored: Parking[StoredThread], places: list[ResumePoint]) -> StoredThread | None:
    """The thread with the longest prefix of the conversation."""
    return next((found for place in places if (found := stored.take(place)) is not None), None)


def _add(digest: blake2b, value: Json) -> None:
    data = encode(value)
    digest.update(b"%d " % len(data))
    digest.update(data)
