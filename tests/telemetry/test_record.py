"""One request in numbers."""

from __future__ import annotations

from toolwire.telemetry import Record, Telemetry
from toolwire.telemetry.prometheus import Prometheus
from toolwire.telemetry.record import NoTelemetry


def test_a_new_record_is_ok_and_shares_no_list() -> None:
    first, second = Record(), Record()
    assert first.outcome == "ok"
    first.losses.append("x")  # type: ignore[arg-type] # any object shows that the list is shared, if it is
    assert second.losses == []


def test_every_kind_of_telemetry_accepts_a_record() -> None:
    kinds: list[Telemetry] = [NoTelemetry(), Prometheus()]
    for telemetry in kinds:
        telemetry.opened(Record())
        telemetry.closed(Record())
