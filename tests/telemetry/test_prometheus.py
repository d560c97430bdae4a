"""Counters: they move as they should, and clients cannot make them many or broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolwire.calls.counts import Tally
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
            tally=Tally(made=3, invalid=1),
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


SHARED = """
import os, sys
from toolwire.calls.counts import Tally
from toolwire.telemetry import Record
from toolwire.telemetry import prometheus
os.environ["PROMETHEUS_MULTIPROC_DIR"] = sys.argv[1]
for _ in range(2):
    child = os.fork()
    if not child:
        telemetry = prometheus.Prometheus()
        telemetry.opened(Record())
        telemetry.closed(Record(backend="b", sent_model="m", tally=Tally(made=2, invalid=1)))
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
