"""A server as a process of its own, used once it listens on its port and ended after the test."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 120.0
_TAIL = 4000  # characters of its log that an error shows


@contextmanager
def server_process(
    command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs it in the folder of its log; raises RuntimeError if it does not listen in time."""
    with log.open("ab") as output:
        process = subprocess.Popen(command, env=environment, cwd=log.parent, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait_for(process, port, log)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    end = log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
    raise RuntimeError(f"nothing listens on port {port}; the log ends with: {end}")
