"""Wrappers of a back end for one request: what they make of one or several replies is one answer for the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from ..backends.base import Backend, EventReply, Model, WireReply
from ..events import Event, Noted, PartEnded, PartStarted
from ..types import Loss, Reasoning, Request, Usage

_UNSIGNED = Loss(
    "reasoning",
    "answer",
    "sent without its signature, because it follows rounds of the gateway that the history will not have",
)
_LEVELS = 4  # of nested counts that dialects add to a usage


class BackendWrapper(Backend):
    """Answers in events. The inner back end belongs to the runtime, which closes it."""

    def __init__(self, inner: Backend) -> None:
        self.name = inner.name
        self.profile = inner.profile
        self._inner = inner

    async def models(self) -> list[Model]:
        return await self._inner.models()


class WrappedReply(EventReply, kw_only=True):
    """Events made of another reply. Closing it stops that reply too, also before its first event was read."""

    first: WireReply | EventReply

    async def close(self) -> None:
        await super().close()
        if isinstance(self.first, EventReply):
            await self.first.close()
        else:
            self.first.abort()


def wrap_reply(
    first: WireReply | EventReply, events: AsyncIterator[list[Event]], losses: tuple[Loss, ...] = (), how: str = ""
) -> WrappedReply:
    """events with the headers and losses of the reply that they are made of."""
    wrapped = WrappedReply(events=events, losses=(*first.losses, *losses), headers=first.headers, how=how, first=first)
    if isinstance(first, EventReply):
        wrapped.how = "; ".join(filter(None, (first.how, how)))
        wrapped.local = first.local
    return wrapped


def added_messages(before: Request, request: Request) -> Request:
    """The request, whose last messages the gateway has added to those of the request before: the client has not seen them."""
    unseen = before.unseen + len(request.messages) - len(before.messages)
    return replace(request, unseen=max(0, unseen))


class Rounds:
    """What several replies have in common that become one answer: indexes of parts, one start, the sum of the usage, each loss once.

    is_bound: the model's reasoning is valid only after the same messages.
    """

    def __init__(self, losses: tuple[Loss, ...] = (), *, is_bound: bool = False) -> None:
        self._is_bound = is_bound
        self._is_hidden = False
        self.count = 0  # parts whose start the client has seen
        self._is_started = False
        self._seen = set(losses)
        self.usage: Usage | None = None

    def hide(self) -> None:
        """From now on the model answers after messages that the client's history will not have."""
        self._is_hidden = self._is_bound

    def without_proofs(self, events: list[Event]) -> list[Event]:
        """The events, without signatures of reasoning that the back end would refuse in the client's next request."""
        if not self._is_hidden or not any(isinstance(event, PartStarted | PartEnded) for event in events):
            return events
        found = [_without_proof(event) for event in events]
        return found if found == events else [*self.new_losses((_UNSIGNED,)), *found]

    def place(self) -> int:
        """The index of the next part for the client."""
        self.count += 1
        return self.count - 1

    def starts(self) -> bool:
        """True for the first reply only: the client sees one start."""
        is_first, self._is_started = not self._is_started, True
        return is_first

    def add_usage(self, more: Usage | None) -> None:
        before = self.usage
        if before is None or more is None:
            self.usage = before or more
            return
        self.usage = before.plus(replace(more, extra=_sum(before.extra, more.extra, _LEVELS)))

    def new_losses(self, losses: tuple[Loss, ...]) -> list[Event]:
        fresh = [loss for loss in dict.fromkeys(losses) if loss not in self._seen]
        self._seen.update(fresh)
        return [Noted(note=loss) for loss in fresh]


def _without_proof(event: Event) -> Event:
    if isinstance(event, PartStarted | PartEnded) and isinstance(event.part, Reasoning):
        return replace(event, part=Reasoning(text=event.part.text, is_continuation=event.part.is_continuation))
    return event


def _sum(before: dict[str, Any], more: dict[str, Any], levels: int) -> dict[str, Any]:
    """Integers are added; of other values the last one counts."""
    total = before | more
    for name in before.keys() & more.keys():
        old, new = before[name], more[name]
        if isinstance(old, dict) and isinstance(new, dict) and levels:
            total[name] = _sum(old, new, levels - 1)
        elif type(old) is int and type(new) is int:
            total[name] = old + new
    return total
