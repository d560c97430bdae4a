"""Back end for models of VS Code: each request goes to one of the connected windows.

Preferred is the window that had the conversation before, if it still has the model, then the window that was focused last. Windows that
did not respond to a request, or whose user has not allowed the model, come last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from msgspec import Struct

from ...calls.signatures import Leading
from ...config.file import BackendConfig
from ...errors import UpstreamError
from ...ids import new_id
from ...profiles import VSCODE
from ...types import Request
from .. import budget
from ..base import Backend, EventReply, Model
from ..sessions import Delivery, RunReply, SessionLost
from .turn import TurnTimeouts, WindowTurn
from .window import Window
from .wire.errors import MISSING, needs_consent, no_model, no_window, own_model, window_lost
from .wire.models import find, listing
from .wire.request_out import chat_request
from .wire.shapes import NAME, ORIGIN_HEADER, ListedModel

_MAX_CONVERSATIONS = 4096  # LRU cache of the window of each conversation


class Picked(Struct, frozen=True):
    window: Window
    model: ListedModel


class Hub:
    """The connected windows. changed is called when the list of models changes. Belongs to one event loop."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self._windows: dict[str, Window] = {}
        self._sticky: dict[str, str] = {}  # conversation -> window

    @property
    def windows(self) -> list[Window]:
        """The preferred one first."""
        return sorted(self._windows.values(), key=lambda window: (-window.focused_at, window.joined_at))

    def join(self, window: Window) -> None:
        self._windows[window.id] = window
        if window.models:
            self.changed()

    def leave(self, window: Window) -> None:
        """Does nothing for a window that has connected again under its id."""
        if self._windows.get(window.id) is window:
            del self._windows[window.id]
            if window.models:
                self.changed()

    def models(self) -> list[ListedModel]:
        """Of all windows, each once."""
        found: dict[str, ListedModel] = {}
        for window in self.windows:
            for key, model in window.models.items():
                found.setdefault(key, model)
        return list(found.values())

    def pick(self, name: str, conversation: str, tried: Collection[str] = ()) -> Picked | None:
        """The window for the next try; None when all windows with this model were tried. Raises UpstreamError when no window has it."""
        if not any(not window.is_leaving for window in self._windows.values()):
            raise no_window(name)
        model = find(name, self.models())
        if model is None:
            raise self._missing(name)
        having = [window for window in self.windows if model.key in window.models and not window.is_leaving]
        left = [window for window in having if window.id not in tried]
        if not left:
            return None
        known = self._sticky.get(conversation)
        window = min(left, key=lambda one: (model.key in one.refused, one.is_mute, one.id != known, left.index(one)))
        return Picked(window, window.models[model.key])

    def stick(self, conversation: str, window: Window) -> None:
        """Later requests of the conversation prefer this window."""
        self._sticky.pop(conversation, None)
        self._sticky[conversation] = window.id
        if len(self._sticky) > _MAX_CONVERSATIONS:
            del self._sticky[next(iter(self._sticky))]

    def _missing(self, name: str) -> UpstreamError:
        fault = no_model(name, [model.key for model in self.models()])
        if not self.models():  # a window that has just connected, or whose providers still start: worth another try
            fault.status, fault.code = 503, "no_models"
        return fault


def conversation_of(request: Request) -> str:
    """Owner, model and the user's first message: enough to find the same window again."""
    return f"{request.owner}\0{request.model}\0{Leading(request.messages).print_of(0)}"


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
        """No window is connected."""
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
            Model(
                id=line.id,
                owner=line.owner,
                title=line.title,
                also=tuple(filter(None, also[line.id])),
                context=line.context,
            )
            for line in listing(models)
        ]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        """Raises GatewayError before the first part; until then another window may be tried."""
        if request.origin == NAME or request.headers.get(ORIGIN_HEADER) == NAME:
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
        sent = chat_request(request, model, id=new_id("gen_"))
        turn = WindowTurn(window, model, sent.chat, self._timeouts)
        try:
            first = await turn.begin(request)
        except BaseException:
            turn.leave()
            raise
        self.hub.stick(conversation, window)
        delivery = Delivery(turn, WindowTurn.leave, WindowTurn.leave)
        how = f"VS Code {window.hello.vscode[:40]}, {model.key[:100]}"
        return RunReply(events=delivery.events(first), losses=sent.losses, how=how, stop=delivery.stop)
