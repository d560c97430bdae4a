"""The counts behind `toolwire stats`, by hour, for the charts of the inspector."""

from __future__ import annotations

from ...telemetry.hourly import HOUR, Counts, HourLine, percentile
from ...telemetry.prices import dollars
from ...types import JsonObject
from ..stats_writer import Recorder

_DAY = 24


async def hourly_stats(recorder: Recorder, hours: int, now: float) -> list[JsonObject]:
    """Of the last hours, the current one included; what is not counted is None. Raises GatewayError."""
    last = int(now) // HOUR
    first = last - hours + 1
    await recorder.write()
    lines = await recorder.read(range(first // _DAY, last // _DAY + 1))
    sums: dict[tuple[int, str, str], Counts] = {}
    for line in lines:
        if first <= line.hour <= last:
            sums.setdefault((line.hour, line.backend, line.model), Counts()).add(line.counts)
    return [_as_json(HourLine(hour=key[0], backend=key[1], model=key[2], counts=sums[key])) for key in sorted(sums)]


def _as_json(line: HourLine) -> JsonObject:
    counts = line.counts
    return {
        "hour": line.hour * HOUR,
        "backend": line.backend,
        "model": line.model,
        "requests": counts.requests,
        "errors": counts.errors,
        "calls": counts.calls,
        "valid_before": counts.accepted,
        "valid_after": min(counts.calls, counts.accepted + counts.repaired + counts.corrected),
        "input_tokens": counts.tokens_in,
        "cached_tokens": counts.tokens_cached,
        "output_tokens": counts.tokens_out,
        "cost": dollars(counts.cost) if counts.priced else None,
        "seconds": round(counts.seconds, 6),
        "latency": _latency(counts.latency),
    }


def _latency(counted: dict[int, int]) -> JsonObject | None:
    """ranges: how many requests took about so many seconds, so that a reader can add up several lines."""
    if not counted:
        return None
    p50, p95 = percentile(counted, 0.5), percentile(counted, 0.95)
    return {
        "p50": p50,
        "p95": p95,
        "ranges": [[percentile({place: 1}, 1.0), count] for place, count in sorted(counted.items())],
    }
