"""A back end that answers from a cassette: no model, no network, the same answer each time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

from ...config.values import BackendConfig
from ...errors import BadRequest, GatewayError
from ...events import Event
from ...types import Request
from ..base import Backend, EventReply, Model
from ..http.transport import Transport
from .cassette import CassetteEntry, TimedEvents, read_cassette
from .content import MatchMode, RequestContent, content_of, difference, is_same, likeness
from .damage import InjectedDamage, Sleep, damaged, parse_damage, refusal

_MAX_MISSES = 100


class ReplayBackend(Backend):
    """Each entry answers once; when all that match have answered, the last of them answers again.

    misses: for each request without a recorded answer, why.
    """

    def __init__(
        self,
        name: str,
        entries: list[CassetteEntry],
        *,
        match: MatchMode = "exact",
        has_pauses: bool = False,
        damage: tuple[InjectedDamage, ...] = (),
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = name
        self._entries = [(entry, content_of(entry.request)) for entry in entries]
        self._mode: MatchMode = match
        self._has_pauses = has_pauses
        self._damage = damage
        self._sleep = sleep
        self._used: set[int] = set()
        self._answers = 0
        self.misses: list[str] = []

    @classmethod
    def from_config(cls, config: BackendConfig, transport: Transport) -> Self:
        return cls(
            config.name,
            read_cassette(Path(config.cassette)),
            match=config.match,
            has_pauses=config.timing == "recorded",
            damage=tuple(parse_damage(text) for text in config.damage),
        )

    async def models(self) -> list[Model]:
        names = dict.fromkeys(entry.model for entry, _ in self._entries if entry.model)
        return [Model(id=name, owner=self.name) for name in names]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        entry = self._find(content_of(request))
        self._answers += 1
        kinds = {one.kind for one in self._damage if one.answer in (0, self._answers)}
        if (error := refusal(kinds) or entry.error) is not None:
            raise error.fresh()
        return EventReply(events=damaged(self._play(entry.answer), kinds, self._sleep), how=f"entry {entry.number}")

    @property
    def unused(self) -> list[int]:
        """The lines of entries that have not answered."""
        return [entry.number for entry, _ in self._entries if entry.number not in self._used]

    def _find(self, received: RequestContent) -> CassetteEntry:
        found = [
            entry
            for entry, recorded in self._entries
            if is_same(recorded, received, self._mode, is_partial=entry.is_partial)
        ]
        if not found:
            raise self._miss(received)
        entry = next((one for one in found if one.number not in self._used), found[-1])
        self._used.add(entry.number)
        return entry

    def _miss(self, received: RequestContent) -> GatewayError:
        if not self._entries:
            text = "the cassette has no entries."
        else:
            entry, recorded = max(self._entries, key=lambda one: likeness(one[1], received))
            text = f"no recorded request matches. The nearest is line {entry.number}: {difference(recorded, received)}."
        if len(self.misses) < _MAX_MISSES:
            self.misses.append(text)
        return BadRequest(text, code="cassette_miss", hint='Record it again, or replay with match = "conversation".')

    async def _play(self, answer: tuple[TimedEvents, ...]) -> AsyncIterator[list[Event]]:
        t = 0.0
        for step in answer:
            if self._has_pauses and step.t > t:
                await self._sleep(step.t - t)
            t = step.t
            yield step.events
