"""Reports of a check: text, JSON, JUnit XML and one HTML page."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from ...check.results import AREAS, DialectReport, ProbeResult
from ..models import plain
from .clients import ClientVerdict

_MARKS = {"pass": "ok", "fail": "FAIL", "unusual": "unusual", "unsupported": "unsupported", "untested": "untested"}
_TITLES = {"wire": "Wire format", "schema": "Tool schemas", "behaviour": "Behaviour"}
_CLIENTS = {"works": "works", "repaired": "works with toolwire", "fails": "does not work"}
_CONTROL = {code: None for code in range(32) if code not in (9, 10, 13)} | {0xFFFE: None, 0xFFFF: None}


class CheckReport(Struct, frozen=True, kw_only=True):
    target: str
    date: str
    version: str
    reports: list[DialectReport]
    clients: list[ClientVerdict]
    configuration: str = ""

    @property
    def is_conforming(self) -> bool:
        return not any(report.verdict(area) == "fail" for report in self.reports for area in AREAS)


def text_lines(report: CheckReport) -> Iterator[str]:
    for dialect in report.reports:
        yield f"{dialect.dialect}, model {dialect.model}: {dialect.requests} requests, {dialect.tokens} tokens, {dialect.seconds:.1f} s"
        for area in AREAS:
            yield f"  {_TITLES[area]:14} {_MARKS[dialect.verdict(area)]}{_summary(dialect, area)}"
        for result in dialect.results:
            if result.outcome != "pass":
                yield f"    {_MARKS[result.outcome]:12} {result.name}{': ' + plain(result.note) if result.note else ''}"
                yield from (
                    f"                 {one.code}: {one.meaning} {plain(one.where)}{' (' + plain(one.detail) + ')' if one.detail else ''}"
                    for one in result.deviations
                )
    if report.clients:
        yield "Clients"
    for verdict in report.clients:
        because = f": {', '.join(verdict.because)}" if verdict.because else ""
        yield f"  {_CLIENTS[verdict.outcome]:20} {verdict.title} ({verdict.dialect}){because}"


def to_json(report: CheckReport) -> str:
    value: dict[str, Any] = {
        "target": report.target,
        "date": report.date,
        "toolwire": report.version,
        "conforms": report.is_conforming,
        "dialects": [_dialect_value(one) for one in report.reports],
        "clients": [
            {
                "client": one.client,
                "title": one.title,
                "dialect": one.dialect,
                "outcome": one.outcome,
                "because": list(one.because),
            }
            for one in report.clients
        ],
        "configuration": report.configuration,
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def to_junit(report: CheckReport) -> str:
    suites = []
    for dialect in report.reports:
        cases = "".join(_junit_case(dialect.dialect, result) for result in dialect.results)
        failed = sum(result.outcome == "fail" for result in dialect.results)
        skipped = sum(result.outcome in ("untested", "unsupported") for result in dialect.results)
        suites.append(
            f'<testsuite name={quoteattr(f"toolwire check {dialect.dialect}")} tests="{len(dialect.results)}" '
            f'failures="{failed}" skipped="{skipped}" time="{dialect.seconds:.3f}">{cases}</testsuite>'
        )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>{"".join(suites)}</testsuites>\n'


def to_html(report: CheckReport) -> str:
    """One page without scripts and external files."""
    sections = "".join(_html_dialect(dialect) for dialect in report.reports)
    rows = [
        (_CLIENTS[one.outcome], one.title, one.dialect, ", ".join(one.because), one.outcome) for one in report.clients
    ]
    clients = _html_table(("verdict", "client", "dialect", "because"), rows) if rows else ""
    settings = f"<h2>Configuration</h2><pre>{html.escape(report.configuration)}</pre>" if report.configuration else ""
    title = f"Check of {html.escape(report.target)}"
    verdict = "The endpoint conforms." if report.is_conforming else "The endpoint does not conform."
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1><p>{verdict} toolwire {html.escape(report.version)}, "
        f"{html.escape(report.date)}.</p>{sections}<h2>Clients</h2>{clients}{settings}</html>\n"
    )


_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #8886;padding:.3em .6em;text-align:left;vertical-align:top}"
    ".fail,.fails{color:#c22}.unusual,.unsupported,.untested,.repaired{color:#b70}.pass,.works{color:#282}pre{overflow:auto}"
)


def _summary(report: DialectReport, area: str) -> str:
    if area == "schema" and report.schemas.total:
        count = report.schemas
        buckets = {
            "invalid JSON": count.invalid_json,
            "unknown name": count.unknown_name,
            "schema mismatch": count.schema_mismatch,
            "no call": count.no_call,
            "refused": count.refused,
        }
        named = "".join(f", {number} {name}" for name, number in buckets.items() if number)
        return f" ({count.valid} of {count.total} forced calls valid{named})"
    if area == "behaviour" and report.decision is not None:
        return f" (F1 {report.decision.f1:.2f} against {report.decision.baseline})"
    return ""


def _dialect_value(report: DialectReport) -> dict[str, Any]:
    count, decision = report.schemas, report.decision
    return {
        "dialect": report.dialect,
        "model": report.model,
        "verdicts": {area: report.verdict(area) for area in AREAS},
        "requests": report.requests,
        "tokens": report.tokens,
        "seconds": round(report.seconds, 3),
        "schemas": {name: getattr(count, name) for name in count.__struct_fields__},
        "decisions": None
        if decision is None
        else {"baseline": decision.baseline, "f1": round(decision.f1, 4)}
        | {name: getattr(decision, name) for name in decision.__struct_fields__ if name != "baseline"},
        "probes": [
            {
                "name": result.name,
                "area": result.area,
                "outcome": result.outcome,
                "note": result.note,
                "deviations": [
                    {
                        "code": one.code,
                        "fault": one.is_fault,
                        "meaning": one.meaning,
                        "where": one.where,
                        "detail": one.detail,
                    }
                    for one in result.deviations
                ],
            }
            for result in report.results
        ],
    }


def _junit_case(dialect: str, result: ProbeResult) -> str:
    name, place = quoteattr(result.name), quoteattr(f"{dialect}.{result.area}")
    inner = ""
    if result.outcome == "fail":
        lines = "\n".join(f"{one.code}: {one.meaning} {one.where} {one.detail}" for one in result.deviations)
        inner = f"<failure message={quoteattr(_clean(', '.join(one.code for one in result.deviations)))}>{escape(_clean(lines))}</failure>"
    elif result.outcome in ("untested", "unsupported"):
        inner = f"<skipped message={quoteattr(_clean(result.note or result.outcome))}/>"
    return f'<testcase name={name} classname={place} time="{result.seconds:.3f}">{inner}</testcase>'


def _clean(text: str) -> str:
    """XML has no control characters."""
    return text.translate(_CONTROL)


def _html_dialect(report: DialectReport) -> str:
    verdicts = "".join(
        f"<li class={report.verdict(area)}>{_TITLES[area]}: {_MARKS[report.verdict(area)]}{html.escape(_summary(report, area))}</li>"
        for area in AREAS
    )
    rows = []
    for result in report.results:
        found = "; ".join(f"{one.code}: {one.meaning} {one.where} {one.detail}" for one in result.deviations)
        rows.append(
            (_MARKS[result.outcome], result.name, result.area, f"{result.note} {found}".strip(), result.outcome)
        )
    return f"<h2>{report.dialect}</h2><ul>{verdicts}</ul>" + _html_table(("outcome", "probe", "area", "found"), rows)


def _html_table(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    """The last value of a row is the class of its first cell."""
    names = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(
        f"<tr><td class={row[-1]}>{html.escape(row[0])}</td>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:-1])
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{names}</tr>{lines}</table>"
