"""The windows that are connected, and which of them a request goes to.

The one that had the conversation before, if it still has the model; else the one that was in front of its user last. A window that left
a request without a word, or whose user has not allowed the model, comes last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from ...calls.signatures import Leading
from ...errors import UpstreamError
from ...types import Request
from .window import Window
from .wire.errors import no_model, no_window
from .wire.models import find
from .wire.shapes import ListedModel

_MOST_CONVERSATIONS = 4096  # whose window is remembered; the one that has been silent for longest goes first


class Picked(Struct, frozen=True):
    window: Window
    model: ListedModel


class Hub:
    """changed is told when other models are there than before. Belongs to one event loop."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.changed = changed
        self._windows: dict[str, Window] = {}
        self._sticky: dict[str, str] = {}  # conversation -> window

    @property
    def windows(self) -> list[Window]:
        """Those that are connected, the preferred one first."""
        return sorted(self._windows.values(), key=_rank)

    def join(self, window: Window) -> None:
        self._windows[window.id] = window
        if window.models:
            self.changed()

    def leave(self, window: Window) -> None:
        """A window that has connected anew under its id stays."""
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
        """Who is asked next; None where all that have it were tried. Raises UpstreamError where nobody has it."""
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
        """The window has begun to answer it."""
        self._sticky.pop(conversation, None)
        self._sticky[conversation] = window.id
        if len(self._sticky) > _MOST_CONVERSATIONS:
            del self._sticky[next(iter(self._sticky))]

    def _missing(self, name: str) -> UpstreamError:
        fault = no_model(name, [model.key for model in self.models()])
        if not self.models():  # a window that has just come, or whose providers still wake: worth another try
            fault.status, fault.code = 503, "no_models"
        return fault


def conversation_of(request: Request) -> str:
    """By whose it is, the model and the user's first words: enough to come back to the same window."""
    return f"{request.owner}\0{request.model}\0{Leading(request.messages).print_of(0)}"


def _rank(window: Window) -> tuple[int, int]:
    return (-window.focused_at, window.joined_at)
