"""The door at /bridge through which VS Code windows come in: only programs of this machine's user, never a web page.

Checked before anything is read, in this order: no Origin (a browser always sends one with a WebSocket, a program has none), a peer and a
Host on loopback, and the token of backends/vscode/token.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ..backends.vscode.hub import Hub
from ..backends.vscode.token import VARIABLE, bridge_token, is_token, token_path
from ..backends.vscode.wire.shapes import MARK, NAME
from ..config.file import is_loopback
from ..errors import BadRequest, ConfigError, quote
from ..wire.exact_json import encode
from .auth import key_in
from .body import Receive, Send
from .bridge_asks import Desk, lent_back
from .bridge_session import Pace, Session
from .websocket import LEAVING

_MOST_WINDOWS = 64


class Bridge:
    """hubs are told of every window. Belongs to one event loop."""

    def __init__(self, hubs: Sequence[Hub], desk: Desk, pace: Pace | None = None) -> None:
        self._hubs = hubs
        self._desk = desk
        self.pace = pace or Pace()
        self._sessions: dict[str, Session] = {}

    async def serve(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One connection, from its handshake to its end."""
        await receive()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            owner = self._admitted(headers, scope.get("client"))
        except BadRequest as error:
            self._desk.log.say("warning", f"a connection to {scope['path']} was refused: {error.message}")
            await _refuse(error, send)
            return
        await send({"type": "websocket.accept"})
        leaving: asyncio.Event = scope.get("extensions", {}).get(LEAVING, {}).get("event") or asyncio.Event()
        session = Session(self, self._desk, owner, self.pace)
        await session.run(receive, send, leaving)

    def join(self, session: Session) -> None:
        """A window that connects anew takes the place of what is left of its old connection."""
        old = self._sessions.pop(session.window.id, None)
        if old is not None:
            old.replace()
        elif len(self._sessions) >= _MOST_WINDOWS:
            raise BadRequest(f"{_MOST_WINDOWS} windows are connected, the most this gateway takes.", status=429)
        self._sessions[session.window.id] = session
        for hub in self._hubs:
            hub.join(session.window)

    def changed(self) -> None:
        """A window lends other models than before."""
        for hub in self._hubs:
            hub.changed()

    async def check(self, model: str, headers: Mapping[str, str]) -> None:
        """What a custom endpoint of VS Code asks for must not be asked of VS Code again: it would go round in circles."""
        if headers.get(MARK) == NAME and await self._desk.is_own(model):
            raise lent_back(model)

    def describe(self) -> bytes:
        """The connected windows as JSON: versions, and how many models each lends."""
        windows = [session.window for session in self._sessions.values()]
        lines = [
            {"vscode": window.hello.vscode, "extension": window.hello.extension, "models": len(window.models)}
            for window in windows
        ]
        return encode({"windows": lines})

    def leave(self, session: Session) -> None:
        if self._sessions.get(session.window.id) is session:
            del self._sessions[session.window.id]
        for hub in self._hubs:
            hub.leave(session.window)

    def _admitted(self, headers: Mapping[str, str], client: tuple[str, int] | None) -> str:
        """Whose window it is. Raises BadRequest."""
        if "origin" in headers:
            raise _refused(403, "origin_refused", f"it comes from a page of {quote(headers['origin'])}.")
        if client is None or not is_loopback(client[0]):
            raise _refused(403, "host_refused", "it comes from another machine.")
        if not is_loopback(_name_in(headers.get("host", ""))):
            raise _refused(403, "host_refused", f"its Host header is {quote(headers.get('host', ''))}.")
        try:
            token = bridge_token(os.environ)
        except ConfigError as error:
            raise _refused(503, "not_ready", error.sentence()) from None
        given = key_in(headers)
        if not is_token(given, token):
            what = "has another token" if given else "has no token"
            raise _refused(
                401, "authentication_failed", f"it {what}; expected the one in {token_path()}, or {VARIABLE}."
            )
        return "vscode"


def _name_in(host: str) -> str:
    """The name in a Host header, without a port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refused(status: int, code: str, why: str) -> BadRequest:
    return BadRequest(why, status=status, code=code)


async def _refuse(error: BadRequest, send: Send) -> None:
    body = error.sentence().encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})
