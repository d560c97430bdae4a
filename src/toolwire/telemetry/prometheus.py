"""Prometheus metrics: names start with toolwire_, labels are few and bounded."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from ..types import Usage
from .prices import dollars
from .record import Record

Sums: TypeAlias = dict[Counter, float]

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_HELD_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300)
_MAX_LABELS = 200  # clients choose model names, and the members named by losses
_MAX_KEYS = 1000  # names that the owner chooses
_MAX_FEATURE = 80
_BY_MODEL = ("backend", "model")
_MADE, _RIGHT, _REPAIRED = "toolwire_tool_calls", "toolwire_tool_calls_accepted", "toolwire_tool_calls_repaired"
_CALLS = {
    "made": (_MADE, "Tool calls that models made."),
    "accepted": (_RIGHT, "Tool calls that were right as the model wrote them."),
    "invalid": ("toolwire_tool_calls_invalid_args", "Tool calls whose arguments did not fit, before any repair."),
    "repaired": (_REPAIRED, "Tool calls whose arguments were repaired."),
    "unknown": ("toolwire_tool_calls_unknown_tool", "Calls of tools that were not offered."),
    "cut": ("toolwire_tool_calls_cut", "Tool calls that were incomplete when the answer ended."),
    "corrections": ("toolwire_tool_call_corrections", "Requests to the model to correct its tool calls."),
    "corrected": ("toolwire_tool_calls_corrected", "Wrong tool calls that the model replaced by a right one."),
    "exhausted": (
        "toolwire_tool_call_corrections_exhausted",
        "Answers whose calls were still wrong after the last correction.",
    ),
}


class Prometheus:
    """With several workers (PROMETHEUS_MULTIPROC_DIR is set) render() adds up the metrics of all of them."""

    def __init__(self) -> None:
        if _is_shared() and values.ValueClass is values.MutexValue:
            # The library reads the environment once, at import; our workers fork later.
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call] # no types here
        self._registry = CollectorRegistry()
        labels = ("backend", "dialect")
        self._requests = self._counter("toolwire_requests_total", "Requests answered.", *labels, "status", "outcome")
        self._verbatim = self._counter(
            "toolwire_verbatim_total", "Requests whose answer passed byte for byte.", "backend"
        )
        self._takeovers = self._counter("toolwire_takeovers_total", "Verbatim answers that needed repair.", "backend")
        self._losses = self._counter(
            "toolwire_losses_total", "Features that the other side could not express.", "feature"
        )
        self._tokens = self._counter("toolwire_tokens_total", "Tokens by direction.", "backend", "kind")
        self._cost = self._counter("toolwire_cost_dollars_total", "Cost in US dollars, where it is known.", *_BY_MODEL)
        self._unpriced = self._counter(
            "toolwire_unpriced_requests_total", "Requests with tokens whose price is unknown.", *_BY_MODEL
        )
        self._fallbacks = self._counter(
            "toolwire_fallbacks_total", "Models of a group that failed before their answer began.", "model", "reason"
        )
        self._key_requests = self._counter("toolwire_key_requests_total", "Requests of named keys.", "key", "status")
        self._key_tokens = self._counter("toolwire_key_tokens_total", "Tokens of named keys.", "key", "kind")
        self._key_cost = self._counter("toolwire_key_cost_dollars_total", "Cost of named keys, where known.", "key")
        self._seconds = self._histogram("toolwire_request_seconds", "Time to the end of the answer.", *labels)
        self._first = self._histogram("toolwire_first_byte_seconds", "Time to the first byte.", *labels)
        self._open = Gauge(
            "toolwire_open_requests", "Requests being answered.", registry=self._registry, multiprocess_mode="livesum"
        )
        self._calls = {name: self._counter(metric, text, *_BY_MODEL) for name, (metric, text) in _CALLS.items()}
        self._refused = self._counter("toolwire_tool_api_400", "Requests a back end refused with 400.", *_BY_MODEL)
        self._bounds = self._counter(
            "toolwire_tool_loop_max_iterations", "Agent tasks that reached their request limit.", *_BY_MODEL
        )
        self._repairs = self._counter("toolwire_argument_repairs", "Argument repairs by kind.", "repair")
        self._pairs = self._counter("toolwire_pair_repairs", "History repairs by kind.", "backend", "kind")
        self._held = self._histogram(
            "toolwire_held_call_seconds", "Time that calls were held.", "backend", buckets=_HELD_SECONDS
        )
        # Labelled children of hot metrics: finding a child by its labels costs more than counting.
        self._known: dict[tuple[str, str, int, str, bool], tuple[Counter, Histogram, Histogram, Counter | None]] = {}
        self._known_tokens: dict[str, tuple[Counter, Counter]] = {}
        self._children: dict[tuple[Counter, str, str], Counter] = {}
        self._models: set[str] = set()
        self._features: set[str] = set()
        self._keys: set[str] = set()

    def opened(self, record: Record) -> None:
        self._open.inc()

    def closed(self, record: Record) -> None:
        self.closed_all([record])

    def closed_all(self, records: Sequence[Record]) -> None:
        """Each counter is increased once, by the sum of all records."""
        self._open.dec(len(records))
        sums: Sums = {}
        for record in records:
            self._count(record, sums)
        for counter, amount in sums.items():
            counter.inc(amount)

    def _count(self, record: Record, sums: Sums) -> None:
        backend = record.backend or "none"
        key = (backend, record.dialect, record.status, record.outcome, record.is_verbatim)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = (
                self._requests.labels(backend, record.dialect, str(record.status), record.outcome),
                self._seconds.labels(backend, record.dialect),
                self._first.labels(backend, record.dialect),
                self._verbatim.labels(backend) if record.is_verbatim else None,
            )
        requests, seconds, first_byte, verbatim = known
        sums[requests] = sums.get(requests, 0) + 1
        seconds.observe(max(0.0, record.ended - record.started))
        if record.first_byte:
            first_byte.observe(max(0.0, record.first_byte - record.started))
        if record.usage is not None:
            self._count_usage(record, record.usage, backend, sums)
        if record.key:
            self._count_key(record, sums)
        for hop in record.hops:
            model, _, reason = hop.rpartition(":")
            _add(sums, self._child(self._fallbacks, _label(model, self._models), reason), 1)
        if verbatim is not None:
            sums[verbatim] = sums.get(verbatim, 0) + 1
        if record.took_over:
            _add(sums, self._takeovers.labels(backend), 1)
        for kind, number in record.history.items():
            _add(sums, self._pairs.labels(backend, kind), number)
        for loss in record.losses:
            _add(sums, self._losses.labels(_label(loss.feature[:_MAX_FEATURE], self._features)), 1)
        self._count_calls(record, backend, sums)

    def _count_usage(self, record: Record, usage: Usage, backend: str, sums: Sums) -> None:
        tokens = self._known_tokens.get(backend)
        if tokens is None:
            tokens = self._tokens.labels(backend, "input"), self._tokens.labels(backend, "output")
            self._known_tokens[backend] = tokens
        sums[tokens[0]] = sums.get(tokens[0], 0) + usage.input
        sums[tokens[1]] = sums.get(tokens[1], 0) + usage.output
        priced = self._unpriced if record.cost is None else self._cost
        child = self._child(priced, backend, _label(record.sent_model or record.model, self._models))
        sums[child] = sums.get(child, 0) + (1 if record.cost is None else dollars(record.cost))

    def render(self) -> bytes:
        registry = self._registry
        if _is_shared():
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library has no types here
        ratios = CollectorRegistry()
        ratios.register(_Accuracy(list(registry.collect())))
        return generate_latest(registry) + generate_latest(ratios)

    def _count_key(self, record: Record, sums: Sums) -> None:
        key, usage = _label(record.key, self._keys, _MAX_KEYS), record.usage
        _add(sums, self._child(self._key_requests, key, str(record.status)), 1)
        if usage is not None:
            _add(sums, self._child(self._key_tokens, key, "input"), usage.input)
            _add(sums, self._child(self._key_tokens, key, "output"), usage.output)
        if record.cost is not None:
            _add(sums, self._key_cost.labels(key), dollars(record.cost))

    def _child(self, counter: Counter, first: str, second: str) -> Counter:
        key = (counter, first, second)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = counter.labels(first, second)
        return child

    def _count_calls(self, record: Record, backend: str, sums: Sums) -> None:
        tally = record.tally
        refused = tally.refused + (record.status == 400 and record.error == "upstream_error")
        made = tally.made + len(record.local)
        if not (made or refused or record.has_reached_bound):
            return
        model = _label(record.sent_model or record.model, self._models)
        if refused:
            _add(sums, self._refused.labels(backend, model), refused)
        if record.has_reached_bound:
            _add(sums, self._bounds.labels(backend, model), 1)
        if not made:
            return
        totals = {"made": made, "accepted": tally.accepted + len(record.local)}
        for name, counter in self._calls.items():
            if number := totals[name] if name in totals else getattr(tally, name):
                _add(sums, self._child(counter, backend, model), number)
        for repair, number in tally.repairs.items():
            _add(sums, self._repairs.labels(repair), number)
        if tally.held_seconds:
            self._held.labels(backend).observe(tally.held_seconds)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self._registry)


class _Accuracy:
    """A collector that computes ratios from metrics that may come from several processes."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        sums: dict[tuple[str, str], dict[str, float]] = {}
        for metric in self._metrics:
            for sample in metric.samples if metric.name in (_MADE, _RIGHT, _REPAIRED) else ():
                if sample.name.endswith("_total"):
                    key = (sample.labels["backend"], sample.labels["model"])
                    sums.setdefault(key, {})[metric.name] = sample.value
        family = GaugeMetricFamily(
            "toolwire_schema_accuracy",
            "Fraction of calls that match their schema, as written (before) and with repairs (after).",
            labels=(*_BY_MODEL, "stage"),
        )
        for key, found in sums.items():
            right, made = found.get(_RIGHT, 0.0), found.get(_MADE, 0.0)
            if made:
                family.add_metric([*key, "before"], right / made)
                family.add_metric([*key, "after"], (right + found.get(_REPAIRED, 0.0)) / made)
        return [family]


def _add(sums: Sums, counter: Counter, amount: float) -> None:
    sums[counter] = sums.get(counter, 0) + amount


def _label(text: str, known: set[str], limit: int = _MAX_LABELS) -> str:
    """A label in ASCII; "other" once there are too many."""
    label = text.encode("ascii", "replace").decode()
    if label not in known:
        if len(known) >= limit:
            return "other"
        known.add(label)
    return label


def _is_shared() -> bool:
    return "PROMETHEUS_MULTIPROC_DIR" in os.environ
