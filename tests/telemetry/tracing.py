"""A trace that a test reads: lines of the log, and entries of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolwire.telemetry import wire_trace
from toolwire.telemetry.redaction import Redaction
from toolwire.telemetry.wire_trace import TraceFile, WireTrace


class Traced:
    """lines: (request, words) as the log gets them."""

    def __init__(self, path: Path | None) -> None:
        self.lines: list[tuple[str, str]] = []
        self._path = path

    def say(self, level: str, words: str, request_id: str = "") -> None:
        assert level == "debug"
        self.lines.append((request_id, words))

    @property
    def words(self) -> list[str]:
        return [words for _, words in self.lines]

    @property
    def kinds(self) -> list[str]:
        """Direction and kind of each message."""
        return [words.split(" ", 2)[2].rpartition(" bytes")[0].rpartition(" ")[0] for words in self.words]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Of the file, once the trace has ended."""
        assert self._path is not None
        return [json.loads(line) for line in self._path.read_bytes().splitlines()]


@contextmanager
def tracing(path: Path | None = None, *secrets: str) -> Iterator[Traced]:
    traced = Traced(path)
    trace = WireTrace(traced.say, Redaction(secrets), TraceFile(path, 1 << 20) if path is not None else None)
    wire_trace.install(trace)
    try:
        yield traced
    finally:
        wire_trace.uninstall(trace)
        trace.close()
