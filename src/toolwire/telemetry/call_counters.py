"""Counters of tool calls, by back end and model: how good a model's calls are, and what the gateway did about them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from .record import Record

_SECONDS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300)
_MAX_MODELS = 200  # clients choose model names
_BY_MODEL = ("backend", "model")
_MADE, _RIGHT, _REPAIRED = "toolwire_tool_calls", "toolwire_tool_calls_accepted", "toolwire_tool_calls_repaired"
_COUNTED = {
    "made": (_MADE, "Tool calls that models made."),
    "accepted": (_RIGHT, "Tool calls that were right as the model wrote them."),
    "invalid": ("toolwire_tool_calls_invalid_args", "Tool calls whose arguments did not fit, before any repair."),
    "repaired": (_REPAIRED, "Tool calls whose arguments were repaired."),
    "unknown": ("toolwire_tool_calls_unknown_tool", "Calls of tools that were not offered."),
    "cut": ("toolwire_tool_calls_cut", "Tool calls that an answer ended in the middle of."),
    "corrections": ("toolwire_tool_call_corrections", "Times a model was told what is wrong and asked again."),
    "corrected": ("toolwire_tool_calls_corrected", "Wrong tool calls in whose place the model gave a right one."),
    "exhausted": (
        "toolwire_tool_call_corrections_exhausted",
        "Answers whose calls stayed wrong to the last correction.",
    ),
}


class CallCounters:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._counters = {
            name: Counter(metric, words, _BY_MODEL, registry=registry) for name, (metric, words) in _COUNTED.items()
        }
        self._refused = Counter(
            "toolwire_tool_api_400", "Requests a back end refused with 400.", _BY_MODEL, registry=registry
        )
        self._bounds = Counter(
            "toolwire_tool_loop_max_iterations",
            "Tasks of agents that made as many requests as they may.",
            _BY_MODEL,
            registry=registry,
        )
        self._repairs = Counter(
            "toolwire_argument_repairs", "Repairs of arguments, by what was done.", ("repair",), registry=registry
        )
        self._pairs = Counter(
            "toolwire_pair_repairs", "Repairs of histories, by kind.", ("backend", "kind"), registry=registry
        )
        self._held = Histogram(
            "toolwire_held_call_seconds",
            "Time that calls were held.",
            ("backend",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._models: set[str] = set()

    def count(self, record: Record) -> None:
        tally, backend = record.tally, record.backend or "none"
        for kind, number in record.history.items():
            self._pairs.labels(backend, kind).inc(number)
        if refused := tally.refused + (record.status == 400 and record.error == "upstream_error"):
            self._refused.labels(backend, self._model(record)).inc(refused)
        if record.has_reached_bound:
            self._bounds.labels(backend, self._model(record)).inc()
        if not record.calls_made:
            return
        model = self._model(record)
        local = {"made": record.calls_made, "accepted": record.calls_accepted}
        for name, counter in self._counters.items():
            if number := local.get(name, getattr(tally, name)):
                counter.labels(backend, model).inc(number)
        for repair, number in tally.repairs.items():
            self._repairs.labels(repair).inc(number)
        if tally.held_seconds:
            self._held.labels(backend).observe(tally.held_seconds)

    def _model(self, record: Record) -> str:
        model = (record.sent_model or record.model).encode("ascii", "replace").decode()
        if model not in self._models:
            if len(self._models) >= _MAX_MODELS:
                return "other"
            self._models.add(model)
        return model


class Accuracy:
    """A collector that makes ratios of what another one has counted, in however many processes."""

    def __init__(self, counted: Iterable[Metric]) -> None:
        self._counted = counted

    def collect(self) -> Iterable[Metric]:
        sums: dict[tuple[str, str], dict[str, float]] = {}
        for metric in self._counted:
            for sample in metric.samples if metric.name in (_MADE, _RIGHT, _REPAIRED) else ():
                if sample.name.endswith("_total"):
                    key = (sample.labels["backend"], sample.labels["model"])
                    sums.setdefault(key, {})[metric.name] = sample.value
        family = GaugeMetricFamily(
            "toolwire_schema_accuracy",
            "The part of all calls that fitted their schema, as written (before) and with repairs (after).",
            labels=(*_BY_MODEL, "stage"),
        )
        for key, found in sums.items():
            right, made = found.get(_RIGHT, 0.0), found.get(_MADE, 0.0)
            if made:
                family.add_metric([*key, "before"], right / made)
                family.add_metric([*key, "after"], (right + found.get(_REPAIRED, 0.0)) / made)
        return [family]
