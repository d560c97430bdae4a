"""Counts by hour, back end and model: what is left of requests when the process that counted them is gone.

A process writes what it has counted in an hour under a name of its own, each time the whole of it, so that it may be written again at any time
and several processes add up. Where the numbers are kept is for others to know: this module counts, tells what is to be written, and reads it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Struct

from .record import Record

HOUR = 3600
_MOST_MODELS = 100  # of one hour: clients choose model names
_MOST_LINES = 5000  # that wait to be written where nobody takes them
_LONGEST = 100
_OTHER = "other"


class Counts(Struct, kw_only=True, omit_defaults=True):
    """calls, and what became of them, as calls.tally has it; refused: requests that the back end took as wrong (400);
    max_iterations: tasks of agents that made as many requests as they may."""

    requests: int = 0
    errors: int = 0
    refused: int = 0
    calls: int = 0
    accepted: int = 0
    invalid: int = 0
    repaired: int = 0
    unknown: int = 0
    cut: int = 0
    corrections: int = 0
    corrected: int = 0
    max_iterations: int = 0
    losses: int = 0
    pair_repairs: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def count(self, record: Record) -> None:
        tally, usage = record.tally, record.usage
        self.requests += 1
        self.errors += record.outcome == "error"
        self.refused += tally.refused + (record.status == 400 and record.error == "upstream_error")
        self.calls += record.calls_made
        self.accepted += record.calls_accepted
        self.invalid += tally.invalid
        self.repaired += tally.repaired
        self.unknown += tally.unknown
        self.cut += tally.cut
        self.corrections += tally.corrections
        self.corrected += tally.corrected
        self.max_iterations += record.has_reached_bound
        self.losses += len(record.losses)
        self.pair_repairs += record.history.total()
        if usage is not None:
            self.tokens_in += usage.input
            self.tokens_out += usage.output
        self.seconds += max(0.0, record.ended - record.started)


class Key(NamedTuple):
    """hour is in hours since 1970."""

    hour: int
    backend: str
    model: str


class Line(Struct, frozen=True, kw_only=True):
    """What one process has counted in one hour."""

    hour: int
    backend: str
    model: str
    counts: Counts

    @property
    def key(self) -> Key:
        return Key(self.hour, self.backend, self.model)


class History:
    """Telemetry that keeps what is not written yet, and the hour that is not over."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[Key, Counts] = {}
        self._unwritten: set[Key] = set()
        self._models: set[tuple[str, str]] = set()  # of the hour that is not over
        self._hour = 0

    def opened(self, record: Record) -> None:
        pass

    def closed(self, record: Record) -> None:
        """A request that no back end was chosen for says nothing about any."""
        if not record.backend:
            return
        key = self._key(record)
        counts = self._counts.get(key)
        if counts is None:
            self._make_room()
            counts = self._counts[key] = Counts()
        counts.count(record)
        self._unwritten.add(key)

    def unwritten(self) -> list[Line]:
        """What has changed since it was last written; whoever takes it says when it is."""
        return [
            Line(hour=key.hour, backend=key.backend, model=key.model, counts=msgspec.structs.replace(self._counts[key]))
            for key in sorted(self._unwritten)
        ]

    def wrote(self, line: Line) -> None:
        """Only if nothing was counted meanwhile it need not be written again; an hour that is over can go."""
        if self._counts.get(line.key) != line.counts:
            return
        self._unwritten.discard(line.key)
        if line.hour < self._now():
            self._counts.pop(line.key, None)

    def _key(self, record: Record) -> Key:
        hour = self._now()
        if hour != self._hour:
            self._hour, self._models = hour, set()
        # Clients choose it, and JSON lets them write what is no text.
        model = (record.sent_model or record.model)[:_LONGEST].encode("utf-8", "replace").decode()
        if (record.backend, model) not in self._models:
            if len(self._models) >= _MOST_MODELS:
                return Key(hour, record.backend, _OTHER)
            self._models.add((record.backend, model))
        return Key(hour, record.backend, model)

    def _make_room(self) -> None:
        """Nobody has taken them for days: the oldest is the least missed."""
        while len(self._counts) >= _MOST_LINES:
            oldest = min(self._counts)
            del self._counts[oldest]
            self._unwritten.discard(oldest)

    def _now(self) -> int:
        return int(self._clock()) // HOUR


def packed(line: Line) -> bytes:
    return msgspec.json.encode(line)


def unpacked(data: bytes) -> Line | None:
    """None if it is not what packed() wrote: an older gateway's, or damaged."""
    try:
        return msgspec.json.decode(data, type=Line)
    except (msgspec.DecodeError, UnicodeError):
        return None
