"""State that clients can read by path: stored answers, conversations, interactions, and answers that run in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...backends.mounts import Receive
from ...calls.turn import BYTES_PER_TOKEN
from ...cluster.node import ClusterNode
from ...dialects import responses
from ...errors import InternalError
from ...memory.answers import AnswerMemory
from ...runtime import Runtime
from ...telemetry import Record
from ...types import Request
from ...wire.exact_json import encode
from ..exchange import while_here
from ..reply import Reply, WrongMethod
from .answers import Stored, send_pieces
from .background import Background
from .conversations import Conversations
from .interactions import Interactions
from .query import StateQuery


def is_stateful(path: str) -> bool:
    return path.startswith(("/responses/", "/conversations/")) or path == "/conversations"


class StateApi:
    """ended is called when a background answer has ended, report with its internal error."""

    def __init__(
        self,
        runtime: Runtime,
        memory: AnswerMemory,
        ended: Callable[[Record], None],
        report: Callable[[InternalError, str], None],
        interval: float,
        cluster: ClusterNode | None = None,
    ) -> None:
        self._runtime = runtime
        self._memory = memory
        self._interval = interval
        self._background = Background(runtime, memory.store, ended, report, cluster)
        self._stored = Stored(runtime, memory, self._background, interval, cluster)
        if cluster is not None:
            cluster.endpoint.follow = self._background.follow
        self._conversations = Conversations(memory)
        self._interactions = Interactions(memory, self._stored)

    async def answer(self, asked: StateQuery, body: bytes, reply: Reply, receive: Receive) -> None:
        if asked.path[0] == "conversations":
            await reply.json(await self._conversations.answer(asked, body))
        elif asked.path[0] == "interactions":
            await self._interactions.answer(asked, reply, receive)
        elif asked.path == ("responses", "input_tokens"):
            await reply.json(await self._count(asked, body))
        else:
            await self._stored.answer(asked, reply, receive)

    async def run(self, request: Request, owner: str, record: Record) -> Callable[[Reply, Receive], Awaitable[None]]:
        """Start the request in the background. Returns what the client gets; it may be dropped at any moment."""
        job, queued = await self._background.start(request, owner, record)

        async def tell(reply: Reply, receive: Receive) -> None:
            if request.stream:
                await while_here(receive, send_pieces(job.follow(), reply, self._interval), job.end_with_server)
            else:
                await reply.json(queued)

        return tell

    async def stop(self) -> None:
        await self._background.stop()
        await self._memory.store.close()

    async def _count(self, asked: StateQuery, body: bytes) -> bytes:
        """An estimate by length that includes the stored history of the request."""
        if asked.method != "POST":
            raise WrongMethod(asked.method, "POST")
        request = responses.DIALECT.decode_request(body, asked.headers)
        kept = await self._runtime.stored(request, asked.owner)
        whole = request.wire if kept is None or not kept.is_here else encode(kept.request.source)
        return encode({"object": "response.input_tokens", "input_tokens": max(1, len(whole) // BYTES_PER_TOKEN)})
