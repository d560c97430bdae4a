"""A file of bounded size that only its owner can read: lines are written by a thread, and the older half is thrown away when it is full."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

_MOST_WAITING = 16 << 20  # bytes that are not written yet; past that lines are dropped, and their number is written


class TraceFile:
    """The file has at most half of the size, and the one before it, with .1 behind its name, the other half."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        """Raises OSError where it cannot be opened."""
        self.path = path
        self._most = max(1, most_bytes // 2)
        self._lines: list[bytes] = []
        self._waiting = 0
        self._dropped = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._is_over = False
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor = _opened(path)
        self._thread = threading.Thread(target=self._run, name="toolwire-trace", daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        with self._lock:
            if self._waiting + len(line) > _MOST_WAITING:
                self._dropped += 1
                return
            self._lines.append(line)
            self._waiting += len(line)
        self._wake.set()

    def close(self) -> None:
        """What waits is written first. Safe to call twice."""
        self._is_over = True
        self._wake.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        while not self._is_over:
            self._wake.wait()
            self._wake.clear()
            self._flush()
        self._flush()
        os.close(self._descriptor)

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines, self._waiting = self._lines, [], 0
            dropped, self._dropped = self._dropped, 0
        if dropped:
            lines.append(b'{"dropped":%d}' % dropped)
        with suppress(OSError):  # a full disk ends no gateway
            for line in lines:
                self._write(line + b"\n")

    def _write(self, data: bytes) -> None:
        if os.fstat(self._descriptor).st_size + len(data) > self._most:
            self._turn_over()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _turn_over(self) -> None:
        """Another worker may have done it already: then its file is not ours any more, and only opened again."""
        mine = os.fstat(self._descriptor)
        with suppress(OSError):
            if os.stat(self.path).st_ino == mine.st_ino:
                os.replace(self.path, self.path.with_name(f"{self.path.name}.1"))
        descriptor = _opened(self.path)
        os.close(self._descriptor)
        self._descriptor = descriptor


def _opened(path: Path) -> int:
    """For its owner alone, also where it was there before; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, 0o600)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
    return descriptor
