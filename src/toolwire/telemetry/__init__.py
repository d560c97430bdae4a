"""What happened, counted: one record a request, and where it goes."""

from .record import Record, Telemetry

__all__ = ["Record", "Telemetry"]
