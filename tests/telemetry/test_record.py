"""One request in numbers."""

from __future__ import annotations

from toolwire.telemetry import Record, Telemetry
from toolwire.telemetry.prometheus import Prometheus
from toolwire.telemetry.record import Silence


def test_a_record_starts_out_well_and_alone() -> None:
    first, second = Record(), Record()
    assert first.outcome == "ok"
    first.losses.append("x")  # type: ignore[arg-type] # any object shows that the list is shared, if it is
    assert second.losses == []


def test_both_kinds_of_telemetry_take_it() -> None:
    kinds: list[Telemetry] = [Silence(), Prometheus()]
    for telemetry in kinds:
        telemetry.opened(Record())
        telemetry.closed(Record())
