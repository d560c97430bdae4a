"""The upgrade of GET /v1/responses: key, Origin and Host are checked before anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...backends.mounts import SHUTDOWN, Receive, Scope, Send
from ...dialects.responses import DIALECT
from ...errors import BadRequest
from ...ids import new_id
from ..auth import Guard
from .connection import ResponsesConnection, SocketSettings
from .requests import PATHS


class ResponsesSocket:
    """log: of level, text and request id. settings: None where the owner has switched it off."""

    def __init__(
        self, guard: Guard, log: Callable[..., None], max_message: int, settings: SocketSettings | None
    ) -> None:
        self.max_message = max_message  # bytes
        self._guard = guard
        self._log = log
        self._settings = settings

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._guard.admit(headers, path="/responses")
            if self._settings is None:
                raise _unavailable()
        except BadRequest as error:
            await self._refuse(error, send)
            return
        await send({"type": "websocket.accept", "compression": True})
        self._log("debug", f"a WebSocket was opened at {PATHS[0]}")
        shutdown: asyncio.Event = scope.get("extensions", {}).get(SHUTDOWN, {}).get("event") or asyncio.Event()
        await ResponsesConnection(self._settings, headers, receive, send).run(shutdown)

    async def _refuse(self, error: BadRequest, send: Send) -> None:
        request_id = new_id("req_")
        if error.status != 426:
            self._log("warning", f"refused a WebSocket at {PATHS[0]}: {error.message}", request_id)
        fields = [(b"content-type", b"application/json"), (b"x-request-id", request_id.encode())]
        body = DIALECT.encode_error(error, request_id)
        await send({"type": "websocket.http.response.start", "status": error.status, "headers": fields})
        await send({"type": "websocket.http.response.body", "body": body})


def _unavailable() -> BadRequest:
    """With 426 Codex uses HTTP at once; after any other status it tries five more times."""
    return BadRequest(
        "this gateway does not serve Responses over WebSocket.",
        status=426,
        code="websocket_unavailable",
        hint="Send the same request with POST, or set [server] websocket = true.",
    )
