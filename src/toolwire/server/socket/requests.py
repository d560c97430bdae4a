"""Requests of a WebSocket: answered and recorded as those of POST, but their errors are messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from ...backends.mounts import Receive
from ...dialects.base import Decode, Endpoint
from ...errors import GatewayError
from ...flows.recorder import FlowRecorder
from ...memory.connection import History
from ...telemetry import Record
from ..auth import Guard, key_in
from ..reply import Reply, internal_error
from .reply import SocketReply

PATHS = ("/v1/responses", "/responses")


class SocketRequests(Struct, frozen=True, kw_only=True):
    """answer: as for a request of POST, with the history of the connection. refuse sends an error to the reply."""

    guard: Guard
    endpoint: Endpoint
    answer: Callable[[Endpoint, Decode, Mapping[str, str], Receive, Reply, Record, History | None], Awaitable[None]]
    refuse: Callable[[GatewayError, Reply, Record], Awaitable[None]]
    flows: FlowRecorder | None = None

    async def respond(
        self,
        decode: Decode,
        headers: Mapping[str, str],
        receive: Receive,
        reply: SocketReply,
        record: Record,
        history: History,
    ) -> None:
        if self.flows is not None:
            reply.send = self.flows.begin(record, _scope(headers), decode, key_in(headers), reply.send)
        try:
            self.guard.admit(headers, path="/responses")  # again: the key may have been revoked since the upgrade
            await self.answer(self.endpoint, decode, headers, receive, reply, record, history)
        except GatewayError as error:
            await self.refuse(error, reply, record)
        except Exception as cause:
            await self.refuse(internal_error(record.request_id, cause), reply, record)
        finally:
            if record.flow is not None:
                record.flow.close()


def _scope(headers: Mapping[str, str]) -> dict[str, Any]:
    """As of an HTTP request, for the record."""
    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"path": PATHS[0], "method": "WEBSOCKET", "headers": fields}
