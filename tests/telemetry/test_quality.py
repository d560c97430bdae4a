from __future__ import annotations

from toolwire.telemetry.hourly import Counts, HourLine
from toolwire.telemetry.quality import CallQuality


def line(backend: str, calls: int, accepted: int) -> HourLine:
    return HourLine(hour=1, backend=backend, model="m", counts=Counts(calls=calls, accepted=accepted))


def test_the_share_of_valid_calls_of_all_processes() -> None:
    quality = CallQuality()
    quality.update([line("a", 30, 30), line("a", 10, 6), line("b", 19, 19)])
    assert quality.share("a", "m") == 0.9
    assert quality.share("b", "m") is None  # too few calls
    assert quality.share("a", "other") is None
    quality.update([])
    assert quality.share("a", "m") is None
