"""Which clients an endpoint works with: the faults that were found, against what each client depends on."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

from msgspec import Struct

from ...check.deviations import CODES
from ...check.results import DialectReport
from ..clients.client import Client
from ..clients.table import clients


class ClientVerdict(Struct, frozen=True, kw_only=True):
    """works: directly. repaired: through toolwire, which repairs the faults in `because`. fails: `because` is why."""

    client: str
    title: str
    dialect: str
    outcome: Literal["works", "repaired", "fails"]
    because: tuple[str, ...] = ()


class _Dependencies(Struct, frozen=True, kw_only=True):
    """breaks: codes that break the client beside those that break every client. tolerates: exceptions to these."""

    breaks: tuple[str, ...] = ()
    tolerates: tuple[str, ...] = ()


def verdicts(direct: list[DialectReport], through: dict[str, DialectReport]) -> list[ClientVerdict]:
    """direct: by dialect of the endpoint. through: the same endpoint behind the gateway, by dialect of the client."""
    found = {report.dialect: report for report in direct}
    return [_verdict(client, found, through) for client in clients().values()]


def breaking(client: str, dialect: str, faults: frozenset[str]) -> tuple[str, ...]:
    """The faults that break this client, in the order of the codes."""
    table = _table()
    general, own = table["every"], table.get(client, _Dependencies())
    by_dialect = table.get(f"{client}.{dialect}", _Dependencies())
    broken = {*general.breaks, *own.breaks, *by_dialect.breaks} - {*own.tolerates, *by_dialect.tolerates}
    return tuple(code for code in CODES if code in faults and code in broken)


def _verdict(client: Client, direct: dict[str, DialectReport], through: dict[str, DialectReport]) -> ClientVerdict:
    """The best of the client's dialects."""
    reasons: dict[str, tuple[str, ...]] = {}
    for dialect in client.dialects:
        if dialect in direct:
            reasons[dialect] = breaking(client.name, dialect, _faults(direct[dialect]))
            if not reasons[dialect]:
                return ClientVerdict(client=client.name, title=client.title, dialect=dialect, outcome="works")
    for dialect in client.dialects:
        if dialect in through and not breaking(client.name, dialect, _faults(through[dialect])):
            because = reasons.get(dialect) or next(iter(reasons.values()), _unchecked(client, direct))
            return ClientVerdict(
                client=client.name, title=client.title, dialect=dialect, outcome="repaired", because=because
            )
    dialect = client.dialects[0]
    because = next(iter(reasons.values()), _unchecked(client, direct))
    return ClientVerdict(client=client.name, title=client.title, dialect=dialect, outcome="fails", because=because)


def _unchecked(client: Client, direct: dict[str, DialectReport]) -> tuple[str, ...]:
    return (f"it needs {' or '.join(client.dialects)}, and only {', '.join(direct)} was checked",)


def _faults(report: DialectReport) -> frozenset[str]:
    return report.faults | {one.code for one in report.deviations if one.code == "tools.ignored"}


@cache
def _table() -> dict[str, _Dependencies]:
    data = tomllib.loads((files(__package__) / "clients.toml").read_text("utf-8"))
    return {
        name: _Dependencies(breaks=tuple(entry.get("breaks", ())), tolerates=tuple(entry.get("tolerates", ())))
        for name, entry in data.items()
    }
