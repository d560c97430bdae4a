"""The back end that asks models of VS Code: each request goes to one of the windows that are connected."""

from __future__ import annotations

import time

from ...config.file import BackendConfig
from ...errors import UpstreamError
from ...ids import new_id
from ...profiles import VSCODE
from ...types import Request
from .. import budget
from ..base import Backend, EventReply, Model
from ..sessions import Delivery, RunReply, SessionLost
from .hub import Hub, Picked, conversation_of
from .turn import Turn, TurnTimeouts
from .wire.errors import MISSING, needs_consent, no_window, own_model, window_lost
from .wire.models import listing
from .wire.request_out import asked
from .wire.shapes import MARK, NAME


class VSCodeBackend(Backend):
    """Answers in events. hub is where windows join it. Belongs to one event loop."""

    profile = VSCODE
    is_single_process = True

    def __init__(self, config: BackendConfig) -> None:
        self.name = config.name
        self.hub = Hub()
        self.budget = budget.ConversationBudget(config.max_requests_per_minute, 0)
        self._models = config.models
        self._timeouts = TurnTimeouts(first=config.first_byte_timeout, idle=config.idle_timeout)

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
        if request.origin == NAME or request.headers.get(MARK) == NAME:
            raise own_model(request.model)
        self.budget.ask(budget.conversation_of(request), time.monotonic())
        conversation = conversation_of(request)
        tried: set[str] = set()
        fault = window_lost()
        while (picked := self.hub.pick(request.model, conversation, tried)) is not None:
            tried.add(picked.window.id)
            try:
                return await self._answered(request, picked, conversation)
            except SessionLost:
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
        turn = Turn(window, model, sent.chat, sent.names, self._timeouts)
        try:
            first = await turn.begin(request)
        except BaseException:
            turn.leave()
            raise
        self.hub.stick(conversation, window)
        delivery = Delivery(turn, Turn.leave, Turn.leave)
        return RunReply(events=delivery.events(first), losses=sent.losses, how=_how(picked), stop=delivery.stop)


def _how(picked: Picked) -> str:
    hello = picked.window.hello
    return f"VS Code {hello.vscode[:40]}, {picked.model.key[:100]}"
