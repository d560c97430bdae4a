"""Which clients an endpoint works with: the faults that were found, against what each client depends on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Literal

from msgspec import Struct, convert

from ...check.deviations import CODES, AnswerWay, Deviation
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


class _Dependencies(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """breaks: codes that break the client beside those that break every client. tolerates: exceptions to these. A code with "/stream" or
    "/whole" is only about answers that are sent in this way.
    reads: "stream" for a client that only uses streams, so that no fault of whole answers reaches it."""

    breaks: tuple[str, ...] = ()
    tolerates: tuple[str, ...] = ()
    reads: AnswerWay = ""


def verdicts(direct: list[DialectReport], through: dict[str, DialectReport]) -> list[ClientVerdict]:
    """direct: by dialect of the endpoint. through: the same endpoint behind the gateway, by dialect of the client."""
    found = {report.dialect: report for report in direct}
    return [_verdict(client, found, through) for client in clients().values()]


def breaking(client: str, dialect: str, deviations: Iterable[Deviation]) -> tuple[str, ...]:
    """The codes that break this client, in the order of the codes."""
    table = _table()
    entries = [
        table.get(name, _Dependencies()) for name in ("every", f"every.{dialect}", client, f"{client}.{dialect}")
    ]
    reads = next((one.reads for one in reversed(entries) if one.reads), "")
    broken: set[str] = set()
    for deviation in deviations:
        if not reads or deviation.way in ("", reads):
            names = {deviation.code, f"{deviation.code}/{deviation.way}"}
            if _is_broken(names, entries):
                broken.add(deviation.code)
    return tuple(code for code in CODES if code in broken)


def _is_broken(names: set[str], entries: list[_Dependencies]) -> bool:
    """The most specific entry that knows the code decides."""
    for entry in reversed(entries):
        if not names.isdisjoint(entry.breaks):
            return True
        if not names.isdisjoint(entry.tolerates):
            return False
    return False


def _verdict(client: Client, direct: dict[str, DialectReport], through: dict[str, DialectReport]) -> ClientVerdict:
    """The best of the client's dialects."""
    reasons: dict[str, tuple[str, ...]] = {}
    for dialect in client.dialects:
        if dialect in direct:
            reasons[dialect] = breaking(client.name, dialect, direct[dialect].all_deviations)
            if not reasons[dialect]:
                return ClientVerdict(client=client.name, title=client.title, dialect=dialect, outcome="works")
    for dialect in client.dialects:
        # The check has no reader for Ollama's dialect. The gateway serves it from the same events as Chat Completions.
        behind = through.get(dialect) or through.get("chat" if dialect == "ollama" else "")
        if behind is not None and not breaking(client.name, dialect, behind.all_deviations):
            because = reasons.get(dialect) or next(iter(reasons.values()), _unchecked(client, direct))
            return ClientVerdict(
                client=client.name, title=client.title, dialect=dialect, outcome="repaired", because=because
            )
    dialect = client.dialects[0]
    because = next(iter(reasons.values()), _unchecked(client, direct))
    return ClientVerdict(client=client.name, title=client.title, dialect=dialect, outcome="fails", because=because)


def _unchecked(client: Client, direct: dict[str, DialectReport]) -> tuple[str, ...]:
    return (f"it needs {' or '.join(client.dialects)}, and only {', '.join(direct)} was checked",)


@cache
def _table() -> dict[str, _Dependencies]:
    data = tomllib.loads((files(__package__) / "clients.toml").read_text("utf-8"))
    return {name: convert(entry, _Dependencies) for name, entry in data.items()}
