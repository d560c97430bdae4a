"""Headers that a client's request may carry on to a back end of its own dialect: features and tracing, never identity or keys."""

from __future__ import annotations

from collections.abc import Mapping

_ANYWHERE = (
    "idempotency-key",
    "session-id",
    "thread-id",
    "traceparent",
    "tracestate",
    "x-client-request-id",
    "x-session-affinity",
    "x-session-id",
)


def passed_on(given: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: given[name] for name in (*_ANYWHERE, *names) if name in given}
