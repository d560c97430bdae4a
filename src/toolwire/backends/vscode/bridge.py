"""The WebSocket at /bridge, to which VS Code windows connect: programs of this machine's user only, never a web page.

Checked before anything is read, in this order: no Origin header (browsers always send one), a peer and a Host on loopback, and
the token of token.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Self
from urllib.parse import urlsplit

from ...config.file import is_loopback
from ...errors import BadRequest, ConfigError, quote
from ...wire.exact_json import encode
from ..base import Backend
from ..mounts import SHUTDOWN, GatewayAccess, Receive, Scope, Send
from .backend import VSCodeBackend
from .session import Pace, WindowSession
from .token import VARIABLE, bridge_token, is_token, token_path
from .wire.frames import MAX_FRAME

_MAX_WINDOWS = 64


class Bridge:
    """A mount: every window joins the hub of each VS Code back end. Belongs to one event loop."""

    path = "/bridge"
    max_message = MAX_FRAME

    def __init__(self, gateway: GatewayAccess, backends: Iterable[Backend]) -> None:
        self.pace = Pace()
        self._gateway = gateway
        self._backends = [backend for backend in backends if isinstance(backend, VSCodeBackend)]
        self._sessions: dict[str, WindowSession] = {}
        for backend in self._backends:
            backend.hub.changed = partial(_report_models, gateway, backend)

    @classmethod
    def prepare(cls, environ: Mapping[str, str]) -> None:
        """Makes the token, because windows read it before they connect."""
        try:
            bridge_token(environ)
        except ConfigError as error:
            raise ConfigError(f"VS Code windows cannot connect: {error.sentence()}") from None

    @classmethod
    def build(cls, gateway: GatewayAccess, backends: Iterable[Backend]) -> Self:
        return cls(gateway, backends)

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _admit(headers, scope.get("client"))
        except BadRequest as error:
            self._gateway.log("warning", f"refused a connection to {scope['path']}: {error.message}")
            fields = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "websocket.http.response.start", "status": error.status, "headers": fields})
            await send({"type": "websocket.http.response.body", "body": error.sentence().encode()})
            return
        await send({"type": "websocket.accept"})
        shutdown: asyncio.Event = scope.get("extensions", {}).get(SHUTDOWN, {}).get("event") or asyncio.Event()
        await WindowSession(self, self._gateway, self.pace).run(receive, send, shutdown)

    def describe(self) -> bytes:
        """The connected windows: versions, and how many models each has."""
        windows = [session.window for session in self._sessions.values()]
        lines = [
            {"vscode": window.hello.vscode, "extension": window.hello.extension, "models": len(window.models)}
            for window in windows
        ]
        return encode({"windows": lines})

    def join(self, session: WindowSession) -> None:
        """A window that reconnects replaces its old connection. Raises BadRequest where too many are connected."""
        old = self._sessions.pop(session.window.id, None)
        if old is not None:
            old.replace()
        elif len(self._sessions) >= _MAX_WINDOWS:
            raise BadRequest(f"{_MAX_WINDOWS} windows are connected, the most this gateway takes.", status=429)
        self._sessions[session.window.id] = session
        for backend in self._backends:
            backend.hub.join(session.window)

    def leave(self, session: WindowSession) -> None:
        if self._sessions.get(session.window.id) is session:
            del self._sessions[session.window.id]
        for backend in self._backends:
            backend.hub.leave(session.window)

    def models_changed(self) -> None:
        for backend in self._backends:
            backend.hub.changed()

    async def is_own_model(self, model: str) -> bool:
        """Whether this is a model of VS Code, also by an alias."""
        return bool(self._backends) and await self._gateway.backend_of(model) in {one.name for one in self._backends}


def _report_models(gateway: GatewayAccess, backend: VSCodeBackend) -> None:
    gateway.models_changed(backend.name, backend.listed())


def _admit(headers: Mapping[str, str], client: tuple[str, int] | None) -> None:
    """Raises BadRequest."""
    if "origin" in headers:
        raise BadRequest(f"it comes from a page of {quote(headers['origin'])}.", status=403, code="origin_refused")
    if client is None or not is_loopback(client[0]):
        raise BadRequest("it comes from another machine.", status=403, code="host_refused")
    if not is_loopback(_name_in(headers.get("host", ""))):
        raise BadRequest(f"its Host header is {quote(headers.get('host', ''))}.", status=403, code="host_refused")
    try:
        token = bridge_token(os.environ)
    except ConfigError as error:
        raise BadRequest(error.sentence(), status=503, code="not_ready") from None
    scheme, _, value = headers.get("authorization", "").partition(" ")
    given = value.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
    if not is_token(given, token):
        found = "another token" if given else "no token"
        why = f"it has {found}; expected the one in {token_path()}, or {VARIABLE}."
        raise BadRequest(why, status=401, code="authentication_failed")


def _name_in(host: str) -> str:
    """The name in a Host header, without a port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
