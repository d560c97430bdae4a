from __future__ import annotations

from toolwire.dialects.ollama.shapes import date_of


def test_a_time_is_written_in_utc() -> None:
    assert date_of(0) == "1970-01-01T00:00:00Z"
    assert date_of(1_800_000_000) == "2027-01-15T08:00:00Z"
