"""One record for each request, metrics, hourly counts and the trace of messages."""

from .record import Record, Telemetry

__all__ = ["Record", "Telemetry"]
