from __future__ import annotations

import pytest

from toolwire.check.deviations import Deviation
from toolwire.check.results import CallDecision, DialectReport, Outcome, ProbeResult


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        (["pass", "fail", "unusual"], "fail"),
        (["pass", "unusual", "unsupported"], "unusual"),
        (["pass", "unsupported"], "unsupported"),
        (["pass", "untested"], "pass"),
        (["untested"], "untested"),
        ([], "untested"),
    ],
)
def test_the_worst_outcome_is_the_verdict_of_its_area(outcomes: list[Outcome], verdict: str) -> None:
    results = [ProbeResult(name="x", area="wire", outcome=outcome) for outcome in outcomes]
    report = DialectReport(dialect="chat", model="m", results=results)
    assert report.verdict("wire") == verdict


def test_faults_are_the_codes_that_break_the_dialect() -> None:
    found = [Deviation(code="finish.missing", where="a"), Deviation(code="http.closes", where="b")]
    report = DialectReport(
        dialect="chat", model="m", results=[ProbeResult(name="x", area="wire", deviations=found * 2)]
    )
    assert report.faults == {"finish.missing"}
    assert [one.code for one in report.deviations] == ["finish.missing", "http.closes"]


def test_f1_counts_missed_and_extra_calls() -> None:
    assert CallDecision(baseline="x", right_calls=8, missed_calls=2, extra_calls=2).f1 == 0.8
    assert CallDecision(baseline="x", right_texts=5).f1 == 1.0
