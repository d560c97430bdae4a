"""A TCP port of 127.0.0.1 for a server that a test starts.

The ports are below those that the kernel gives to clients and to listeners on port 0, and each worker of pytest has its own range, so
that no other program takes the port before the server listens on it.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import socket

_FIRST = 20_000
_EACH = 1_500
_WORKERS = 8
_worker = int((re.search(r"\d+$", os.environ.get("PYTEST_XDIST_WORKER", "")) or ["0"])[0]) % _WORKERS
_offsets = itertools.count(random.randrange(_EACH))


def free_port() -> int:
    for offset in itertools.islice(_offsets, _EACH):
        port = _FIRST + _worker * _EACH + offset % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port of this worker is free")
