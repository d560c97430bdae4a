"""Counters for Prometheus: names start with toolwire_, labels are few and bounded."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.multiprocess import MultiProcessCollector

from ..types import Loss
from .call_counters import Accuracy, CallCounters
from .record import Record

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_MAX_FEATURES = 200  # losses carry member names that clients choose
_MAX_FEATURE = 80


class Prometheus:
    """With several workers (PROMETHEUS_MULTIPROC_DIR is set) render() adds up what all of them counted."""

    def __init__(self) -> None:
        if _is_shared() and values.ValueClass is values.MutexValue:
            # The library looks at the environment once, when it is imported; our workers are made later.
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call] # no types here
        self._registry = registry = CollectorRegistry()
        labels = ("backend", "dialect")
        self._requests = Counter(
            "toolwire_requests_total", "Requests answered.", (*labels, "status", "outcome"), registry=registry
        )
        self._verbatim = Counter(
            "toolwire_verbatim_total", "Requests whose bytes passed untouched.", ("backend",), registry=registry
        )
        self._taken = Counter(
            "toolwire_takeovers_total", "Verbatim answers that had to be put right.", ("backend",), registry=registry
        )
        self._calls = CallCounters(registry)
        self._losses = Counter(
            "toolwire_losses_total", "Features that the other side could not express.", ("feature",), registry=registry
        )
        self._tokens = Counter("toolwire_tokens_total", "Tokens by direction.", ("backend", "kind"), registry=registry)
        self._seconds = Histogram(
            "toolwire_request_seconds", "Time to the end of the answer.", labels, buckets=_SECONDS, registry=registry
        )
        self._first = Histogram(
            "toolwire_first_byte_seconds", "Time to the first byte.", labels, buckets=_SECONDS, registry=registry
        )
        self._open = Gauge(
            "toolwire_open_requests", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self._features: set[str] = set()
        self._tokens_of: dict[str, tuple[Counter, Counter]] = {}
        self._known: dict[tuple[str, str, int, str], tuple[Counter, Histogram, Histogram]] = {}

    def opened(self, record: Record) -> None:
        self._open.inc()

    def closed(self, record: Record) -> None:
        self._open.dec()
        backend, dialect = record.backend or "none", record.dialect
        requests, seconds, first = self._children(backend, dialect, record.status, record.outcome)
        requests.inc()
        seconds.observe(max(0.0, record.ended - record.started))
        if record.first_byte:
            first.observe(max(0.0, record.first_byte - record.started))
        if record.is_verbatim:
            self._verbatim.labels(backend).inc()
        if record.took_over:
            self._taken.labels(backend).inc()
        self._calls.count(record)
        if record.usage is not None:
            taken, given = self._counts(backend)
            taken.inc(record.usage.input)
            given.inc(record.usage.output)
        for loss in record.losses:
            self._losses.labels(self._feature(loss)).inc()

    def _children(self, backend: str, dialect: str, status: int, outcome: str) -> tuple[Counter, Histogram, Histogram]:
        """Looked up once: finding a child by its labels costs more than counting."""
        key = (backend, dialect, status, outcome)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (
                self._requests.labels(backend, dialect, str(status), outcome),
                self._seconds.labels(backend, dialect),
                self._first.labels(backend, dialect),
            )
        return found

    def _counts(self, backend: str) -> tuple[Counter, Counter]:
        found = self._tokens_of.get(backend)
        if found is None:
            found = self._tokens_of[backend] = (
                self._tokens.labels(backend, "input"),
                self._tokens.labels(backend, "output"),
            )
        return found

    def render(self) -> bytes:
        counted = self._registry
        if _is_shared():
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call] # the library has no types here
        families = list(counted.collect())
        ratios = CollectorRegistry()
        ratios.register(Accuracy(families))
        return generate_latest(counted) + generate_latest(ratios)

    def _feature(self, loss: Loss) -> str:
        feature = loss.feature[:_MAX_FEATURE].encode("ascii", "replace").decode()
        if feature not in self._features:
            if len(self._features) >= _MAX_FEATURES:
                return "other"
            self._features.add(feature)
        return feature


def _is_shared() -> bool:
    return "PROMETHEUS_MULTIPROC_DIR" in os.environ
