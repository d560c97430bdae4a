"""What Codex starts as an MCP server for a thread: it carries bytes between Codex and the gateway's socket, and understands none.

Run as `python -I bridge_stdio.py SOCKET TOKEN`. The token goes first, as a line. It needs nothing but the standard library, and ends
as soon as either side does, so it outlives neither the thread nor the gateway.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

_CHUNK = 1 << 16
_STDIN, _STDOUT = 0, 1


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("expected two arguments: the gateway's socket, and the token of a thread.", file=sys.stderr)
        return 2
    path, token = arguments
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        connection.sendall(token.encode() + b"\n")
    except OSError as error:
        print(f"the gateway is not reached: {error.strerror}.", file=sys.stderr)
        return 1
    # Nothing can wake a thread that reads from a pipe: as a daemon, it is left behind when the gateway hangs up.
    threading.Thread(target=_ask, args=(connection,), daemon=True).start()
    _answer(connection)
    return 0


def _ask(connection: socket.socket) -> None:
    """From Codex to the gateway; the end is passed on, and the gateway hangs up."""
    with suppress(OSError):
        while data := os.read(_STDIN, _CHUNK):
            connection.sendall(data)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _answer(connection: socket.socket) -> None:
    """From the gateway to Codex, until one of them has gone."""
    with suppress(OSError):
        while data := connection.recv(_CHUNK):
            while data:
                data = data[os.write(_STDOUT, data) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
