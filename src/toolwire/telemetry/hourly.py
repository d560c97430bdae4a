"""Request counts by hour, back end, model and key, for storage beyond the life of the process.

A process stores the totals of one hour under a name of its own, so that it may write them again at any time and several processes add up.
This module counts and encodes; the server decides where the counts are stored.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

from .record import Record

HOUR = 3600
_MAX_MODELS = 100  # per hour: clients choose model names
_MAX_LINES_PER_HOUR = 2000  # of models and keys; past it, keys are counted together
_MAX_LINES = 5000  # that wait to be written
_MAX_NAME = 100
_OTHER = "other"
_STEPS = 4  # ranges of latency between a time and its double, so that a percentile is exact to 9 %
_MIN_SECONDS = 1e-3
_MAX_SECONDS = 1e5

Key: TypeAlias = tuple[int, str, str, str]
"""The hour in hours since 1970, back end, model, name of the client's key."""


class Counts(Struct, kw_only=True, omit_defaults=True):
    """calls and their outcomes are those of calls.validation.Tally; refused counts requests that the back end answered with 400;
    max_iterations counts agent tasks that reached their request limit. latency: requests by range of their time to the end of the answer.
    cost: of the priced requests, in billionths of a dollar; unpriced: requests with tokens whose price is unknown."""

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
    tokens_cached: int = 0  # of tokens_in
    tokens_out: int = 0
    priced: int = 0
    unpriced: int = 0
    cost: int = 0
    seconds: float = 0.0
    latency: dict[int, int] = {}

    def add(self, other: Counts) -> None:
        for name in SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for place, count in other.latency.items():
            self.latency[place] = self.latency.get(place, 0) + count

    def copy(self) -> Counts:
        return msgspec.structs.replace(self, latency=self.latency.copy())

    def count(self, record: Record) -> None:
        tally, usage = record.tally, record.usage
        self.requests += 1
        if record.outcome == "error":
            self.errors += 1
        self.refused += tally.refused + (record.status == 400 and record.error == "upstream_error")
        if tally.made or record.local:
            self.calls += tally.made + len(record.local)
            self.accepted += tally.accepted + len(record.local)
            self.invalid += tally.invalid
            self.repaired += tally.repaired
            self.unknown += tally.unknown
            self.cut += tally.cut
        self.corrections += tally.corrections
        self.corrected += tally.corrected
        if record.has_reached_bound:
            self.max_iterations += 1
        self.losses += len(record.losses)
        if record.history:
            self.pair_repairs += record.history.total()
        if usage is not None:
            self.tokens_in += usage.input
            self.tokens_cached += usage.cached
            self.tokens_out += usage.output
            if record.cost is None:
                self.unpriced += 1
            else:
                self.priced += 1
                self.cost += record.cost
        seconds = max(0.0, record.ended - record.started)
        self.seconds += seconds
        place = int(math.log2(min(max(seconds, _MIN_SECONDS), _MAX_SECONDS) / _MIN_SECONDS) * _STEPS)
        self.latency[place] = self.latency.get(place, 0) + 1


SUMS = tuple(name for name in Counts.__struct_fields__ if name != "latency")
"""The members of Counts that are numbers."""


def percentile(latency: Mapping[int, int], share: float) -> float | None:
    """The time in seconds within which this share of the requests ended; None if none was counted."""
    rank = math.ceil(sum(latency.values()) * share)
    for place in sorted(latency):
        rank -= latency[place]
        if rank <= 0:
            return _MIN_SECONDS * float(2 ** ((place + 0.5) / _STEPS))
    return None


class HourLine(Struct, frozen=True, kw_only=True):
    """The counts of one process in one hour, as they are stored."""

    hour: int
    backend: str
    model: str
    counts: Counts
    owner: str = ""  # the name of the client's key

    @property
    def key(self) -> Key:
        return self.hour, self.backend, self.model, self.owner

    def encode(self) -> bytes:
        return msgspec.json.encode(self)

    @staticmethod
    def decode(data: bytes) -> HourLine | None:
        """None for data that encode() did not write: damaged, or of an incompatible version."""
        try:
            return msgspec.json.decode(data, type=HourLine)
        except (msgspec.DecodeError, UnicodeError):
            return None


class HourlyCounts:
    """Telemetry that holds the counts of the current hour, and those not yet written."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._counts: dict[Key, Counts] = {}
        self._unwritten: set[Key] = set()
        self._models: set[tuple[str, str]] = set()  # of the current hour
        self._lines: set[tuple[str, str, str]] = set()
        self._hour = 0

    def opened(self, record: Record) -> None:
        pass

    def closed(self, record: Record) -> None:
        """Ignores requests that reached no back end."""
        if not record.backend:
            return
        # Clients choose the name, and JSON allows text that is not valid Unicode.
        model = (record.sent_model or record.model)[:_MAX_NAME].encode("utf-8", "replace").decode()
        key = (int(self._clock()) // HOUR, record.backend, model, record.key)
        counts = self._counts.get(key)
        if counts is None:
            key = self._bounded(key)
            counts = self._counts.setdefault(key, Counts())
        counts.count(record)
        self._unwritten.add(key)

    def unwritten(self) -> list[HourLine]:
        """Lines that changed since they were last written; the caller confirms each with wrote()."""
        return [
            HourLine(hour=key[0], backend=key[1], model=key[2], owner=key[3], counts=self._counts[key].copy())
            for key in sorted(self._unwritten)
        ]

    def wrote(self, line: HourLine) -> None:
        """Marks a line as written, unless it changed since; drops it if its hour is over."""
        if self._counts.get(line.key) != line.counts:
            return
        self._unwritten.discard(line.key)
        if line.hour < int(self._clock()) // HOUR:
            self._counts.pop(line.key, None)

    def _bounded(self, key: Key) -> Key:
        """The key to count under: past the limits of an hour, "other" stands for the model or the key. Evicts the oldest lines."""
        hour, backend, model, owner = key
        if hour != self._hour:
            self._hour, self._models, self._lines = hour, set(), set()
        if (backend, model) not in self._models:
            if len(self._models) >= _MAX_MODELS:
                model = _OTHER
            else:
                self._models.add((backend, model))
        if len(self._lines) >= _MAX_LINES_PER_HOUR and (backend, model, owner) not in self._lines:
            owner = _OTHER if owner else ""
        key = (hour, backend, model, owner)
        self._lines.add(key[1:])
        while key not in self._counts and len(self._counts) >= _MAX_LINES:
            oldest = min(self._counts)
            del self._counts[oldest]
            self._unwritten.discard(oldest)
        return key
