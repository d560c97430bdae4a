from __future__ import annotations

import json
from pathlib import Path

from toolwire.backends.cursor.simulator.journal import CallRecord, Journal, Run


def run(number: int = 0) -> Run:
    return Run(number=number, transport="run", http="2", request_id="r", headers={}, at=0.0)


def test_everything_is_written_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.note("opened", run(), text="é", data=b"\x01")
    journal.offence("twice", run())
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(line["run"], line["what"]) for line in lines] == [(0, "opened"), (0, "offence")]
    assert (lines[0]["text"], lines[0]["data"]) == ("é", "01")
    assert journal.offences == ["twice"]


def test_the_first_end_of_a_run_is_its_end() -> None:
    journal, one = Journal(), run()
    journal.runs.append(one)
    assert journal.open_runs == [one]
    journal.close(one, "ended")
    journal.close(one, "gone")
    assert (one.state, journal.open_runs) == ("ended", [])


def test_how_often_each_call_was_answered() -> None:
    one = run()
    one.calls.append(CallRecord(id=1, exec_id="e", kind="mcp", call_id="c1", answers=2))
    assert (one.results, run().results) == ({"c1": 2}, {})


def test_every_run_counts_for_itself() -> None:
    one, other = run(), run(1)
    one.received["client_heartbeat"] += 1
    assert (one.received.total(), other.received.total(), run(2).received.total()) == (1, 0, 0)


def test_times_go_on() -> None:
    journal = Journal()
    journal.note("a")
    journal.request("2", "/x", 404)
    assert 0 <= journal.entries[0].at <= journal.entries[1].at <= journal.now
    assert journal.requests == [("2", "/x", 404)]
