"""The back end that asks models of VS Code: each request goes to one of the windows that are connected."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from ...config.file import BackendConfig
from ...errors import UpstreamError
from ...events import Event
from ...ids import new_id
from ...profiles import VSCODE
from ...types import Request
from .. import budget
from ..base import EventReply, Model
from .hub import Hub, Picked, conversation_of
from .inbox import Gone
from .turn import Patience, Turn
from .wire.errors import MISSING, needs_consent, no_window, window_lost
from .wire.models import listing
from .wire.request_out import asked


class TurnReply(EventReply, kw_only=True):
    """leave: nobody reads it, or on; also where reading never began."""

    leave: Callable[[], None]

    async def close(self) -> None:
        await super().close()
        self.leave()


class VSCodeBackend:
    """Answers in events. hub is where windows join it. Belongs to one event loop."""

    dialect = ""
    profile = VSCODE
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, config: BackendConfig) -> None:
        self.name = config.name
        self.hub = Hub()
        self.budget = budget.Budget(config.max_requests_per_minute, 0)
        self._models = config.models
        self._patience = Patience(first=config.first_byte_timeout, idle=config.idle_timeout)

    @property
    def absence(self) -> UpstreamError | None:
        """Why no request can be answered now."""
        return None if any(not window.is_leaving for window in self.hub.windows) else no_window()

    async def models(self) -> list[Model]:
        """Nothing while no window is connected."""
        return self.listed()

    def listed(self) -> list[Model]:
        if self._models and self.hub.windows:
            return [Model(id=name, owner=self.name) for name in self._models]
        models = self.hub.models()
        also = {name: [model.key, model.family] for model in models for name in (model.key, model.id)}
        return [
            Model(id=line.id, owner=line.owner, title=line.title, also=tuple(filter(None, also[line.id])))
            for line in listing(models)
        ]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises GatewayError before the first word; only until then may another window be asked."""
        self.budget.ask(budget.conversation_of(request), time.monotonic())
        conversation = conversation_of(request)
        tried: set[str] = set()
        fault = window_lost()
        while (picked := self.hub.pick(request.model, conversation, tried)) is not None:
            tried.add(picked.window.id)
            try:
                return await self._answered(request, picked, conversation)
            except Gone:
                fault = window_lost()
            except UpstreamError as error:
                if error.code != MISSING.code:
                    raise
                fault = error
        raise fault.fresh()

    async def close(self) -> None:
        for window in self.hub.windows:
            window.close("the gateway ends")

    async def _answered(self, request: Request, picked: Picked, conversation: str) -> EventReply:
        window, model = picked.window, picked.model
        if model.key in window.refused:
            raise needs_consent(model.key)
        sent = asked(request, model, id=new_id("gen_"))
        turn = Turn(window, model, sent.chat, sent.names, self._patience)
        try:
            first = await turn.begin(request)
        except BaseException:
            turn.leave()
            raise
        self.hub.stick(conversation, window)
        return TurnReply(events=_told(turn, first), losses=sent.losses, how=_how(picked), leave=turn.leave)


async def _told(turn: Turn, first: list[Event]) -> AsyncIterator[list[Event]]:
    try:
        yield first
        while not turn.is_over:
            yield await turn.more()
    finally:
        turn.leave()


def _how(picked: Picked) -> str:
    hello = picked.window.hello
    return f"VS Code {hello.vscode[:40]}, {picked.model.key[:100]}"
