"""`toolwire stats`: error rates and accuracy of tool calls by back end and model, from the stored counts."""

from __future__ import annotations

import asyncio
import difflib
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import Struct

from ..catalog.found import found_config
from ..config.file import Config, default_store_path
from ..errors import ConfigError, GatewayError, quote
from ..memory.store import Store, store_for
from ..memory.store import errors as failures
from ..memory.store.schema import connect
from ..memory.store.sqlite import PATIENCE, SqliteStore
from ..telemetry.hourly import SUMS, Counts, HourLine, percentile
from ..telemetry.prices import dollars
from .models import plain
from .serve import ConfigFlag

_DAY = 86400
_HOURS = 24
_MAX_DAYS = 366
_NONE = "-"


class Row(Struct, frozen=True, kw_only=True):
    """One line of a table; names: back end and model, or day and back end."""

    names: tuple[str, ...]
    counts: Counts


class StatsRange(Struct, frozen=True, kw_only=True):
    """The counts from the first day to the last, in days since 1970."""

    first: int
    last: int
    lines: tuple[HourLine, ...]


def stats(
    *,
    days: Annotated[int, Parameter(help="Number of days, including today, in UTC.")] = 7,
    backend: Annotated[str, Parameter(help="Only this back end.")] = "",
    json: Annotated[bool, Parameter(help="Write JSON, for programs.", negative="")] = False,
    config: ConfigFlag = None,
) -> int:
    """Compare back ends and models by error rate and accuracy, from the counts of the gateway."""
    if not 1 <= days <= _MAX_DAYS:
        raise ConfigError(f"found {days}; expected a whole number from 1 to {_MAX_DAYS}.", where="--days")
    found = asyncio.run(_found(config, days, backend))
    if json:
        print(msgspec.json.format(msgspec.json.encode(as_json(found)), indent=2).decode())
    else:
        print("\n".join(render_text(found)))
    if backend and not found.lines:
        names = [one.name for one in asyncio.run(found_config(config)).backends]
        if backend not in names:
            near = difflib.get_close_matches(backend, names, n=1)
            hint = f"did you mean {quote(near[0])}?" if near else f"the back ends are {', '.join(names)}."
            print(f"There is no back end {quote(backend)}; {hint}", file=sys.stderr)
            return 1
    return 0


def by_model(lines: Iterable[HourLine]) -> list[Row]:
    return _sum_by(lines, lambda line: (line.backend, line.model))


def by_day(lines: Iterable[HourLine]) -> list[Row]:
    return _sum_by(lines, lambda line: (date_of(line.hour // _HOURS), line.backend))


def by_key(lines: Iterable[HourLine]) -> list[Row]:
    """Those of named keys, by key, day, back end and model."""
    named = [line for line in lines if line.owner]
    return _sum_by(named, lambda line: (line.owner, date_of(line.hour // _HOURS), line.backend, line.model))


def as_json(found: StatsRange) -> dict[str, Any]:
    return {
        "from": date_of(found.first),
        "to": date_of(found.last),
        "models": [_row_as_json(("backend", "model"), row) for row in by_model(found.lines)],
        "days": [_row_as_json(("day", "backend"), row) for row in by_day(found.lines)],
        "keys": [_row_as_json(("key", "day", "backend", "model"), row) for row in by_key(found.lines)],
    }


def render_text(found: StatsRange) -> list[str]:
    span = f"{date_of(found.first)} to {date_of(found.last)} (UTC)"
    if not found.lines:
        return [f"Nothing was counted from {span}."]
    return [
        f"From {span}:",
        *_table(("back end", "model"), by_model(found.lines)),
        "",
        "By day:",
        *_table(("day", "back end"), by_day(found.lines)),
        *_key_table(found.lines),
    ]


def date_of(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY, UTC).date().isoformat()


def rates(counts: Counts) -> dict[str, float | None]:
    """None without requests or calls. Accuracy: the fraction of calls that match their schema, before and after repair."""
    return {
        "error_rate": _part(counts.errors, counts.requests),
        "accuracy_before": _part(counts.accepted, counts.calls),
        "accuracy_after": _part(counts.accepted + counts.repaired, counts.calls),
        "seconds_per_request": _part(counts.seconds, counts.requests),
        "seconds_p50": percentile(counts.latency, 0.5),
        "seconds_p95": percentile(counts.latency, 0.95),
    }


async def _found(path: Path | None, days: int, backend: str) -> StatsRange:
    from ..server.stats_writer import recorded

    config = await found_config(path)
    last = int(time.time()) // _DAY
    first = last - days + 1
    lines: Sequence[HourLine] = ()
    if (store := _opened(config)) is not None:
        try:
            lines = await recorded(store, range(first, last + 1))
        except GatewayError as error:
            raise failures.for_owner(_place_of(config), error) from None
        finally:
            await store.close()
    return StatsRange(first=first, last=last, lines=tuple(line for line in lines if backend in ("", line.backend)))


def _opened(config: Config) -> Store | None:
    """None if there is no file yet: reading must not create it. Raises ConfigError."""
    settings = config.store
    if settings.kind == "memory":
        raise ConfigError(
            "the store of this configuration is in memory, so no counts are stored.",
            where="[store] kind",
            hint='Set kind to "sqlite"; the counts of the running gateway are at /metrics.',
        )
    if settings.kind == "sqlite":
        file = Path(settings.path) if settings.path else default_store_path()
        if not file.exists():
            return None
        connect(file, PATIENCE).close()  # raises errors about the file for its owner
        return SqliteStore(file, max_bytes=settings.max_mb << 20, max_age=settings.max_age_days * float(_DAY))
    return store_for(settings, connections=1).store


def _place_of(config: Config) -> Path | str:
    if config.store.kind == "postgres":
        return "[store] url"
    return Path(config.store.path) if config.store.path else default_store_path()


def _sum_by(lines: Iterable[HourLine], names_of: Callable[[HourLine], tuple[str, ...]]) -> list[Row]:
    sums: dict[tuple[str, ...], Counts] = {}
    for line in lines:
        sums.setdefault(names_of(line), Counts()).add(line.counts)
    return [Row(names=names, counts=sums[names]) for names in sorted(sums)]


def _row_as_json(titles: Sequence[str], row: Row) -> dict[str, Any]:
    counted = {name: getattr(row.counts, name) for name in SUMS}
    cost = {"cost": dollars(row.counts.cost) if row.counts.priced else None}
    return {**dict(zip(titles, row.names, strict=True)), **counted, **cost, **rates(row.counts)}


def _key_table(lines: Iterable[HourLine]) -> list[str]:
    """Key and model; empty without named keys."""
    rows = _sum_by([line for line in lines if line.owner], lambda line: (line.owner, line.backend, line.model))
    return ["", "By key:", *_table(("key", "back end", "model"), rows)] if rows else []


def _table(titles: Sequence[str], rows: Sequence[Row]) -> list[str]:
    heads = [
        *titles,
        "requests",
        "errors",
        "400s",
        "calls",
        "right",
        "repaired",
        "corrections",
        "at bound",
        "seconds",
        "cost",
    ]
    cells = [[*(plain(name) for name in row.names), *_cells(row.counts)] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    return [_line(line, widths, len(titles)) for line in (heads, *cells)]


def _cells(counts: Counts) -> list[str]:
    part = rates(counts)
    corrections = f"{counts.corrected}/{counts.corrections}" if counts.corrections else _NONE
    return [
        f"{counts.requests:,}",
        _percent(part["error_rate"]),
        f"{counts.refused:,}",
        f"{counts.calls:,}",
        _percent(part["accuracy_before"]),
        _percent(part["accuracy_after"]),
        corrections,
        f"{counts.max_iterations:,}",
        f"{part['seconds_per_request'] or 0.0:.1f}",
        _cost(counts),
    ]


def _line(cells: Sequence[str], widths: Sequence[int], names: int) -> str:
    placed = [
        cell.ljust(width) if number < names else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def _cost(counts: Counts) -> str:
    """In dollars. A + stands for requests whose price is unknown."""
    if not counts.priced:
        return _NONE
    return f"${dollars(counts.cost):,.4f}{'+' if counts.unpriced else ''}"


def _percent(part: float | None) -> str:
    return _NONE if part is None else f"{part:.1%}"


def _part(some: float, whole: float) -> float | None:
    return some / whole if whole else None
