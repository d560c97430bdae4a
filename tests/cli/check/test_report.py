from __future__ import annotations

import json
from xml.etree import ElementTree

from toolwire.check.deviations import Deviation
from toolwire.check.results import CallDecision, DialectReport, ProbeResult, SchemaCount
from toolwire.cli.check.clients import ClientVerdict
from toolwire.cli.check.report import CheckReport, text_lines, to_html, to_json, to_junit

HOSTILE = "<script>alert(1)</script>\x00\x1b[31m"


def report(outcome: str = "fail") -> CheckReport:
    found = [Deviation(code="finish.missing", where="text: end", detail=HOSTILE)]
    results = [
        ProbeResult(name="text", area="wire", outcome=outcome, deviations=found if outcome == "fail" else []),  # type: ignore[arg-type]
        ProbeResult(name="two calls", area="wire", outcome="untested", note="the model made 1 call"),
        ProbeResult(name="schema text", area="schema"),
    ]
    dialect = DialectReport(dialect="chat", model="m", results=results, schemas=SchemaCount(valid=4, schema_mismatch=1))
    dialect.decision = CallDecision(baseline="labels", right_calls=3, missed_calls=1)
    verdict = ClientVerdict(client="x", title="X", dialect="chat", outcome="repaired", because=("finish.missing",))
    return CheckReport(target="http://x", date="today", version="1", reports=[dialect], clients=[verdict])


def test_text_has_three_verdicts_and_escapes_what_the_server_sent() -> None:
    text = "\n".join(text_lines(report()))
    assert "Wire format    FAIL" in text
    assert "4 of 5 forced calls valid, 1 schema mismatch" in text
    assert "F1 0.86 against labels" in text
    assert "works with toolwire  X (chat): finish.missing" in text
    assert "\x1b" not in text


def test_json_is_complete() -> None:
    value = json.loads(to_json(report()))
    assert value["conforms"] is False
    assert value["dialects"][0]["verdicts"] == {"wire": "fail", "schema": "pass", "behaviour": "untested"}
    assert value["dialects"][0]["probes"][0]["deviations"][0]["code"] == "finish.missing"
    assert value["clients"][0]["outcome"] == "repaired"
    assert json.loads(to_json(report("pass")))["conforms"] is True


def test_junit_is_xml_with_failures_and_skips() -> None:
    suite = ElementTree.fromstring(to_junit(report()).encode())[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    failure = suite[0][0]
    assert failure.tag == "failure"
    assert "<script>" in (failure.text or "")


def test_html_is_one_page_in_which_foreign_text_is_only_text() -> None:
    page = to_html(report())
    assert "<script" not in page
    assert "http-equiv" not in page
    assert "&lt;script&gt;" in page
