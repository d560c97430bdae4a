"""Prometheus metrics: each number of a record has its counter, and clients can neither multiply nor break the series."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from toolwire.calls.validation import CallTally
from toolwire.telemetry import Record
from toolwire.telemetry.prometheus import Prometheus
from toolwire.types import Loss, Usage


def counted(*records: Record) -> dict[str, float]:
    telemetry = Prometheus()
    for record in records:
        telemetry.opened(record)
        telemetry.closed(record)
    lines = telemetry.render().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs if "_created" not in name}


def test_one_request_moves_its_counters() -> None:
    found = counted(
        Record(
            backend="b",
            dialect="chat",
            status=200,
            is_verbatim=True,
            took_over="a cut",
            sent_model="m",
            tally=CallTally(made=3, invalid=1),
            usage=Usage(input=7, output=5),
            losses=[Loss("n", "", ""), Loss("n", "", ""), Loss("seed", "", "")],
            started=1.0,
            first_byte=1.2,
            ended=2.0,
        )
    )
    assert found['toolwire_requests_total{backend="b",dialect="chat",outcome="ok",status="200"}'] == 1
    assert found['toolwire_tool_calls_total{backend="b",model="m"}'] == 3
    assert found['toolwire_tool_calls_invalid_args_total{backend="b",model="m"}'] == 1
    assert found['toolwire_verbatim_total{backend="b"}'] == 1
    assert found['toolwire_takeovers_total{backend="b"}'] == 1
    assert found['toolwire_tokens_total{backend="b",kind="input"}'] == 7
    assert found['toolwire_tokens_total{backend="b",kind="output"}'] == 5
    assert found['toolwire_losses_total{feature="n"}'] == 2
    assert found['toolwire_losses_total{feature="seed"}'] == 1
    assert found['toolwire_request_seconds_sum{backend="b",dialect="chat"}'] == 1.0
    assert found['toolwire_first_byte_seconds_sum{backend="b",dialect="chat"}'] == pytest.approx(0.2)
    assert found["toolwire_open_requests"] == 0


def test_a_refused_request_has_no_back_end() -> None:
    found = counted(Record(dialect="messages", status=401, outcome="error", error="authentication_failed"))
    assert found['toolwire_requests_total{backend="none",dialect="messages",outcome="error",status="401"}'] == 1


def test_a_400_of_a_back_end_is_counted_apart() -> None:
    found = counted(
        Record(backend="b", status=400, outcome="error", error="upstream_error"),
        Record(backend="b", status=400, outcome="error", error="invalid_request"),
    )
    assert found['toolwire_tool_api_400_total{backend="b",model=""}'] == 1


def test_open_requests_are_those_not_closed() -> None:
    telemetry = Prometheus()
    telemetry.opened(Record())
    assert b"toolwire_open_requests 1.0" in telemetry.render()


def test_clients_cannot_make_labels_without_end() -> None:
    found = counted(Record(losses=[Loss(f"request.{number}", "", "") for number in range(5000)]))
    features = [name for name in found if name.startswith("toolwire_losses_total")]
    assert len(features) == 201
    assert found['toolwire_losses_total{feature="other"}'] == 4800


@pytest.mark.parametrize("name", ["\ud800", "a\nb", 'a"b', "\\", "x" * 100_000, "é", "\x00"])
def test_clients_cannot_break_the_page(name: str) -> None:
    telemetry = Prometheus()
    telemetry.opened(Record())
    telemetry.closed(Record(losses=[Loss(name, "", "")]))
    page = telemetry.render()
    assert len(page) < 20_000
    assert all(line.startswith((b"#", b"toolwire_")) for line in page.splitlines())


def counted_calls(*records: Record) -> dict[str, float]:
    return {name.removeprefix("toolwire_"): value for name, value in counted(*records).items()}


BY_MODEL = '{backend="b",model="m"}'


def test_each_number_has_its_counter() -> None:
    tally = CallTally(
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
    found = counted_calls(Record(backend="b", sent_model="m", tally=tally, history=Counter({"orphan": 2})))
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
    found = counted_calls(*records, Record(backend="b", sent_model="m"))
    assert found[f"tool_loop_max_iterations_total{BY_MODEL}"] == 2
    assert found['tool_loop_max_iterations_total{backend="c",model="m"}'] == 1


def test_an_answer_without_calls_moves_nothing() -> None:
    found = counted_calls(Record(backend="b", sent_model="m", status=200))
    assert not [name for name in found if BY_MODEL in name or "accuracy" in name]


def test_a_request_that_the_back_end_refuses_is_counted_and_our_own_refusals_are_not() -> None:
    refused = Record(backend="b", sent_model="m", status=400, error="upstream_error")
    ours = Record(backend="b", sent_model="m", status=400, error="invalid_request")
    late = Record(backend="b", sent_model="m", status=200, tally=CallTally(made=1, refused=1))
    assert counted_calls(refused, ours, late)[f"tool_api_400_total{BY_MODEL}"] == 2


def test_a_request_that_found_no_back_end_has_a_word_for_it() -> None:
    found = counted_calls(Record(model="x", history=Counter({"orphan": 1})))
    assert found['pair_repairs_total{backend="none",kind="orphan"}'] == 1


def test_the_requested_model_is_used_when_none_was_sent() -> None:
    found = counted_calls(Record(backend="b", model="asked", tally=CallTally(made=1)))
    assert found['tool_calls_total{backend="b",model="asked"}'] == 1


def test_clients_cannot_make_the_models_many_or_strange() -> None:
    names = [f"m{number}" for number in range(300)]
    found = counted_calls(
        Record(backend="b", sent_model='é"\n', tally=CallTally(made=1)),
        *(Record(backend="b", sent_model=name, tally=CallTally(made=1)) for name in names),
        Record(backend="b", sent_model="m0", tally=CallTally(made=1)),
    )
    calls = {name: value for name, value in found.items() if name.startswith("tool_calls_total")}
    assert len(calls) == 201
    assert calls['tool_calls_total{backend="b",model="other"}'] == 101
    assert calls['tool_calls_total{backend="b",model="m0"}'] == 2
    assert calls['tool_calls_total{backend="b",model="?\\"\\n"}'] == 1


def test_accuracy_is_of_what_several_records_add_up_to() -> None:
    records = [Record(backend="b", sent_model="m", tally=CallTally(made=1, invalid=one)) for one in (0, 1, 1, 0)]
    found = counted_calls(*records)
    assert found['schema_accuracy{backend="b",model="m",stage="before"}'] == 0.5
    assert found['schema_accuracy{backend="b",model="m",stage="after"}'] == 0.5


SHARED = """
import os, sys
from toolwire.calls.validation import CallTally
from toolwire.telemetry import Record
from toolwire.telemetry import prometheus
os.environ["PROMETHEUS_MULTIPROC_DIR"] = sys.argv[1]
for _ in range(2):
    child = os.fork()
    if not child:
        telemetry = prometheus.Prometheus()
        telemetry.opened(Record())
        telemetry.closed(Record(backend="b", sent_model="m", tally=CallTally(made=2, invalid=1)))
        os._exit(0)
    os.wait()
sys.stdout.write(prometheus.Prometheus().render().decode())
"""


@pytest.mark.slow
def test_processes_add_up_though_the_library_was_imported_before(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHARED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": "src"},
    )
    assert 'toolwire_tool_calls_total{backend="b",model="m"} 4.0' in done.stdout
    assert 'toolwire_schema_accuracy{backend="b",model="m",stage="before"} 0.5' in done.stdout


def test_cost_is_counted_by_model_and_by_key() -> None:
    usage = Usage(input=7, output=5)
    base = Record(dialect="chat", backend="b", sent_model="m", status=200, usage=usage)
    found = counted(
        replace(base, key="ann", cost=1_500_000_000),
        replace(base, key="ann", cost=500_000_000),
        replace(base, key="bob"),
    )
    assert found['toolwire_cost_dollars_total{backend="b",model="m"}'] == 2.0
    assert found['toolwire_unpriced_requests_total{backend="b",model="m"}'] == 1
    assert found['toolwire_key_cost_dollars_total{key="ann"}'] == 2.0
    assert 'toolwire_key_cost_dollars_total{key="bob"}' not in found
    assert found['toolwire_key_requests_total{key="ann",status="200"}'] == 2
    assert found['toolwire_key_tokens_total{key="bob",kind="input"}'] == 7
