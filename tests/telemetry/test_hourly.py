"""Counts by hour: nothing counted twice or lost, names that clients choose bounded, and every number of a record in its place."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.calls.validation import CallTally
from toolwire.telemetry import Record, Telemetry
from toolwire.telemetry.hourly import HOUR, SUMS, Counts, HourLine, HourlyCounts, percentile
from toolwire.types import Loss, Usage

START = 480_000 * HOUR


class Clock:
    def __init__(self) -> None:
        self.now = float(START)

    def __call__(self) -> float:
        return self.now


def record(backend: str = "b", model: str = "m", **members: object) -> Record:
    return msgspec.structs.replace(Record(backend=backend, sent_model=model, status=200), **members)


def test_every_number_of_a_record_has_its_place() -> None:
    tally = CallTally(made=20, invalid=6, repaired=5, unknown=3, cut=1, corrections=2, corrected=4, refused=7)
    full = record(
        tally=tally,
        usage=Usage(input=11, output=13),
        losses=[Loss("a", "b", "c"), Loss("d", "e", "f")],
        history=Counter({"orphan": 2, "missing": 3}),
        started=1.0,
        ended=3.5,
        outcome="error",
        error="upstream_error",
    )
    full.status = 400
    history: Telemetry = HourlyCounts(Clock())
    history.opened(full)
    history.closed(full)
    assert isinstance(history, HourlyCounts)
    (line,) = history.unwritten()
    assert line.counts == Counts(
        requests=1,
        errors=1,
        refused=8,
        calls=20,
        accepted=10,
        invalid=6,
        repaired=5,
        unknown=3,
        cut=1,
        corrections=2,
        corrected=4,
        losses=2,
        pair_repairs=5,
        tokens_in=11,
        tokens_out=13,
        unpriced=1,
        seconds=2.5,
        latency={45: 1},
    )
    doubled = Counts()
    doubled.add(line.counts)
    doubled.add(line.counts)
    assert all(getattr(doubled, name) == 2 * getattr(line.counts, name) for name in SUMS)
    assert doubled.latency == {45: 2}


def test_percentiles_of_latency_are_exact_to_nine_percent() -> None:
    history = HourlyCounts(Clock())
    for number in range(1, 101):
        history.closed(record(started=5.0, ended=5.0 + number / 10))
    (line,) = history.unwritten()
    read = HourLine.decode(line.encode())
    assert read == line
    assert percentile(line.counts.latency, 0.5) == pytest.approx(5.0, rel=0.09)
    assert percentile(line.counts.latency, 0.95) == pytest.approx(9.5, rel=0.09)
    assert percentile({}, 0.5) is None


def test_latency_beyond_the_ranges_is_counted_at_their_ends() -> None:
    counts = Counts()
    for seconds in (-1.0, 0.0, 1e9):
        counts.count(record(started=0.0, ended=seconds))
    assert percentile(counts.latency, 0.0) == pytest.approx(0.001, rel=0.1)
    assert percentile(counts.latency, 1.0) == pytest.approx(1e5, rel=0.1)


def test_disconnected_clients_and_unrouted_requests_are_no_errors() -> None:
    history = HourlyCounts(Clock())
    history.closed(record(outcome="client_gone"))
    history.closed(record(backend="", outcome="error", error="model_not_found"))
    (line,) = history.unwritten()
    assert (line.backend, line.counts.requests, line.counts.errors) == ("b", 1, 0)


def test_an_hour_back_end_and_model_each_have_a_line() -> None:
    clock = Clock()
    history = HourlyCounts(clock)
    for hour in range(2):
        clock.now = START + hour * HOUR
        for backend in "ab":
            for model in "mn":
                history.closed(record(backend, model))
                history.closed(record(backend, model))
    lines = history.unwritten()
    assert len(lines) == len({line.key for line in lines}) == 8
    assert {line.counts.requests for line in lines} == {2}
    assert [line.hour for line in lines] == sorted(line.hour for line in lines)


def test_a_line_is_written_again_only_when_it_has_changed() -> None:
    clock = Clock()
    history = HourlyCounts(clock)
    history.closed(record())
    (line,) = history.unwritten()
    history.closed(record())  # while it was being written
    history.wrote(line)
    (line,) = history.unwritten()
    assert line.counts.requests == 2
    history.wrote(line)
    assert history.unwritten() == []
    history.closed(record())
    (line,) = history.unwritten()
    assert line.counts.requests == 3, "a line is always the whole of its hour"
    clock.now += HOUR
    history.wrote(line)
    clock.now -= HOUR
    history.closed(record())
    (line,) = history.unwritten()
    assert line.counts.requests == 1, "an hour that is over and written is let go"


def test_models_that_clients_make_up_are_bounded() -> None:
    clock = Clock()
    history = HourlyCounts(clock)
    for number in range(1000):
        history.closed(record(model=f"m{number}"))
    lines = history.unwritten()
    assert len(lines) == 101
    assert sum(line.counts.requests for line in lines) == 1000
    assert next(line.counts.requests for line in lines if line.model == "other") == 900


def test_the_oldest_lines_are_evicted_when_none_is_written() -> None:
    clock = Clock()
    history = HourlyCounts(clock)
    for hour in range(60):
        clock.now = START + hour * HOUR
        for number in range(100):
            history.closed(record(model=f"m{number}"))
    lines = history.unwritten()
    assert len(lines) == 5000
    assert lines[0].hour == START // HOUR + 10


@given(st.text(st.characters(), max_size=150))
def test_every_name_can_be_written(name: str) -> None:
    history = HourlyCounts(Clock())
    history.closed(record(model=name))
    (line,) = history.unwritten()
    assert HourLine.decode(line.encode()) == line
    assert len(line.model) <= 100


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"hour":"x"}', b"\xff", b'{"hour":1,"backend":"b","model":"m"}']
)
def test_what_was_not_written_here_is_not_read(data: bytes) -> None:
    assert HourLine.decode(data) is None


def test_a_newer_gateways_line_is_read_as_far_as_it_is_known() -> None:
    data = b'{"hour":1,"backend":"b","model":"m","counts":{"requests":2,"new":5},"more":1}'
    assert HourLine.decode(data) == HourLine(hour=1, backend="b", model="m", counts=Counts(requests=2))


def test_costs_are_counted_by_key_and_unknown_prices_apart() -> None:
    history = HourlyCounts(Clock())
    usage = Usage(input=1)
    for owner, cost in (("ann", 5), ("ann", 7), ("bob", None), ("", 0)):
        history.closed(record(key=owner, usage=usage, cost=cost))
    history.closed(record(key="ann"))  # without tokens it has no cost at all
    found = {line.owner: (line.counts.cost, line.counts.priced, line.counts.unpriced) for line in history.unwritten()}
    assert found == {"ann": (12, 2, 0), "bob": (0, 0, 1), "": (0, 1, 0)}
    assert all(HourLine.decode(line.encode()) == line for line in history.unwritten())


def test_many_keys_share_lines_beyond_the_limit_of_an_hour() -> None:
    history = HourlyCounts(Clock())
    for number in range(3000):
        history.closed(record(key=f"k{number}"))
    history.closed(record(key="k0"))
    lines = {line.owner: line.counts.requests for line in history.unwritten()}
    assert len(lines) == 2001
    assert (lines["k0"], lines["other"]) == (2, 1000)
