"""Counters of calls: each number of a tally in its own, by back end and model, and no label that a client or model can fill."""

from __future__ import annotations

from collections import Counter

from prometheus_client import CollectorRegistry, generate_latest

from toolwire.calls.counts import Tally
from toolwire.telemetry import Record
from toolwire.telemetry.call_counters import Accuracy, CallCounters


def counted(*records: Record) -> dict[str, float]:
    registry = CollectorRegistry()
    counters = CallCounters(registry)
    for record in records:
        counters.count(record)
    ratios = CollectorRegistry()
    ratios.register(Accuracy(list(registry.collect())))
    lines = (generate_latest(registry) + generate_latest(ratios)).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#") and "_created" not in line)
    return {name.removeprefix("toolwire_"): float(value) for name, value in pairs}


BY_MODEL = '{backend="b",model="m"}'


def test_each_number_has_its_counter() -> None:
    tally = Tally(
        made=20,
        invalid=6,
        repaired=5,
        unknown=3,
        cut=1,
        corrections=2,
        corrected=4,
        exhausted=1,
        refused=7,
        held_seconds=0.2,
        repairs=Counter({"typed": 3, "closed": 2}),
    )
    found = counted(Record(backend="b", sent_model="m", tally=tally, history=Counter({"orphan": 2})))
    assert {name.removesuffix(BY_MODEL): value for name, value in found.items() if name.endswith(BY_MODEL)} == {
        "tool_calls_total": 20,
        "tool_calls_accepted_total": 10,
        "tool_calls_invalid_args_total": 6,
        "tool_calls_repaired_total": 5,
        "tool_calls_unknown_tool_total": 3,
        "tool_calls_cut_total": 1,
        "tool_call_corrections_total": 2,
        "tool_calls_corrected_total": 4,
        "tool_call_corrections_exhausted_total": 1,
        "tool_api_400_total": 7,
    }
    assert found['argument_repairs_total{repair="typed"}'] == 3
    assert found['pair_repairs_total{backend="b",kind="orphan"}'] == 2
    assert found['held_call_seconds_sum{backend="b"}'] == 0.2
    assert found['schema_accuracy{backend="b",model="m",stage="before"}'] == 0.5
    assert found['schema_accuracy{backend="b",model="m",stage="after"}'] == 0.75


def test_tasks_that_reach_their_bound_are_counted_also_without_a_call() -> None:
    records = [Record(backend=name, sent_model="m", has_reached_bound=True) for name in "bbc"]
    found = counted(*records, Record(backend="b", sent_model="m"))
    assert found[f"tool_loop_max_iterations_total{BY_MODEL}"] == 2
    assert found['tool_loop_max_iterations_total{backend="c",model="m"}'] == 1


def test_an_answer_without_calls_moves_nothing() -> None:
    found = counted(Record(backend="b", sent_model="m", status=200))
    assert not [name for name in found if BY_MODEL in name or "accuracy" in name]


def test_a_request_that_the_back_end_refuses_is_counted_and_our_own_refusals_are_not() -> None:
    refused = Record(backend="b", sent_model="m", status=400, error="upstream_error")
    ours = Record(backend="b", sent_model="m", status=400, error="invalid_request")
    late = Record(backend="b", sent_model="m", status=200, tally=Tally(made=1, refused=1))
    assert counted(refused, ours, late)[f"tool_api_400_total{BY_MODEL}"] == 2


def test_a_request_that_found_no_back_end_has_a_word_for_it() -> None:
    found = counted(Record(model="x", history=Counter({"orphan": 1})))
    assert found['pair_repairs_total{backend="none",kind="orphan"}'] == 1


def test_the_name_asked_for_stands_in_where_none_was_sent() -> None:
    found = counted(Record(backend="b", model="asked", tally=Tally(made=1)))
    assert found['tool_calls_total{backend="b",model="asked"}'] == 1


def test_clients_cannot_make_the_models_many_or_strange() -> None:
    names = [f"m{number}" for number in range(300)]
    found = counted(
        Record(backend="b", sent_model='é"\n', tally=Tally(made=1)),
        *(Record(backend="b", sent_model=name, tally=Tally(made=1)) for name in names),
        Record(backend="b", sent_model="m0", tally=Tally(made=1)),
    )
    calls = {name: value for name, value in found.items() if name.startswith("tool_calls_total")}
    assert len(calls) == 201
    assert calls['tool_calls_total{backend="b",model="other"}'] == 101
    assert calls['tool_calls_total{backend="b",model="m0"}'] == 2
    assert calls['tool_calls_total{backend="b",model="?\\"\\n"}'] == 1


def test_accuracy_is_of_what_several_records_add_up_to() -> None:
    records = [Record(backend="b", sent_model="m", tally=Tally(made=1, invalid=one)) for one in (0, 1, 1, 0)]
    found = counted(*records)
    assert found['schema_accuracy{backend="b",model="m",stage="before"}'] == 0.5
    assert found['schema_accuracy{backend="b",model="m",stage="after"}'] == 0.5
