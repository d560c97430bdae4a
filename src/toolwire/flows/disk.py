"""Flows in files, so that they survive a restart: JSON lines in segments of bounded size, written by a thread.

Each process appends to a segment of its own. When a segment is full, the next one is begun, and the oldest ones are deleted until all of
them fit the limits. Only redacted flows are written; the thread redacts them.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..errors import ConfigError
from .cassette import cassette_line
from .detail import flow_record
from .record import Flow
from .sealed import SealedFlow

SEGMENT = "flows-"
_SUFFIX = ".jsonl"
_MAX_SEGMENT = 8 << 20  # bytes
_MAX_QUEUED = 32 << 20  # bytes of flows that wait for the disk; more are not written
_DAY = 86400.0
_CLOSE_SECONDS = 5.0


class FlowFiles:
    """warn is called with the first problem. Raises ConfigError if the folder cannot be used."""

    def __init__(
        self,
        folder: Path,
        max_bytes: int,
        max_days: int,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_age = max_days * _DAY
        self._warn: Callable[[str], None] | None = warn
        self._clock = clock
        self._segment_bytes = max(1, min(_MAX_SEGMENT, max_bytes // 4))
        self._path: Path | None = None
        self._size = 0
        self._count = 0
        self._queued = 0
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(folder, 0o700)
            self._prune()
        except OSError as error:
            raise ConfigError(f"this folder cannot be used: {error.strerror}.", where=str(folder)) from None
        self._thread = threading.Thread(target=self._run, name="toolwire-flows", daemon=True)
        self._thread.start()

    def load(self, most: int, max_bytes: int) -> list[Flow]:
        """The newest flows, the oldest of them first. Lines that cannot be read are left out."""
        found: list[Flow] = []
        size = 0
        for path in reversed(self._segments()):
            for line in reversed(_lines(path)):
                size += len(line)
                if len(found) >= most or size > max_bytes:
                    return found[::-1]
                flow = _flow_in(line)
                if flow is not None and flow.summary.started >= self._clock() - self._max_age:
                    found.append(flow)
        return found[::-1]

    def put(self, seal: Callable[[], SealedFlow], size: int) -> None:
        """Write the flow that seal() returns, which is called in the thread. size: bytes that it holds until then."""
        if self._queued + size > _MAX_QUEUED:
            self._report("flows arrive faster than they can be written; some are left out.")
            return
        self._queued += size
        self._jobs.put(lambda: self._write(seal, size))

    def delete(self, flow_id: str = "") -> None:
        """One flow, or all."""
        self._jobs.put(lambda: self._delete(flow_id))

    def close(self) -> None:
        """Writes what waits first."""
        self._jobs.put(None)
        self._thread.join(timeout=_CLOSE_SECONDS)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except OSError as error:
                self._report(f"flows cannot be written to {self._folder}: {error.strerror}.")
            except Exception as fault:  # the thread must go on with the next flow
                self._report(f"a flow cannot be written: {type(fault).__name__}.")

    def _write(self, seal: Callable[[], SealedFlow], size: int) -> None:
        try:
            line = cassette_line(flow_record(seal()))
            if self._path is None or self._size + len(line) > self._segment_bytes:
                self._begin_segment()
            assert self._path is not None
            with _open(self._path) as file:
                file.write(line)
            self._size += len(line)
        finally:
            self._queued -= size

    def _begin_segment(self) -> None:
        self._count += 1
        name = f"{int(self._clock() * 1000):014d}-{os.getpid()}-{self._count:06d}"
        self._path, self._size = self._folder / f"{SEGMENT}{name}{_SUFFIX}", 0
        self._prune()

    def _prune(self) -> None:
        """There must be room for one more segment."""
        segments = self._segments()
        sizes = {path: path.stat().st_size for path in segments}
        total = sum(sizes.values()) + self._segment_bytes
        for path in segments:
            is_old = path.stat().st_mtime < self._clock() - self._max_age
            if path != self._path and (is_old or total > self._max_bytes):
                total -= sizes[path]
                path.unlink(missing_ok=True)

    def _delete(self, flow_id: str) -> None:
        for path in self._segments():
            if not flow_id:
                path.unlink(missing_ok=True)
                continue
            lines = _lines(path)
            rest = [line for line in lines if (flow := _flow_in(line)) is None or flow.summary.id != flow_id]
            if len(rest) != len(lines):
                temporary = path.with_suffix(".tmp")
                with _open(temporary) as file:
                    file.write(b"".join(line + b"\n" for line in rest))
                os.replace(temporary, path)
                return
        if not flow_id:
            self._path = None

    def _segments(self) -> list[Path]:
        """The oldest first."""
        return sorted(path for path in self._folder.glob(f"{SEGMENT}*{_SUFFIX}") if path.is_file())

    def _report(self, message: str) -> None:
        if self._warn is not None:
            warn, self._warn = self._warn, None
            warn(message)


def _open(path: Path) -> BinaryIO:
    """For appending, readable by its owner alone. Does not follow links."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0)


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines()
    except OSError:
        return []


def _flow_in(line: bytes) -> Flow | None:
    try:
        return msgspec.json.decode(line, type=Flow)
    except (msgspec.DecodeError, UnicodeError):
        return None
