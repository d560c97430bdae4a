"""Starting the server: uvicorn on uvloop and httptools, in one process or in several that share the port."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import time
from types import FrameType

import uvicorn

from ..config import Config
from ..errors import ConfigError
from .app import App

_LEAST_LIFE = 2.0  # a worker that dies sooner is not started again at once


def run(config: Config, *, workers: int = 1) -> None:
    if workers <= 1:
        _serve(config, None)
        return
    if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("several workers need a system with fork and SO_REUSEPORT.", where="--workers")
    with tempfile.TemporaryDirectory(prefix="toolwire-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        _Workers(config, workers).run()


def _serve(config: Config, listener: socket.socket | None) -> None:
    server = config.server
    options = uvicorn.Config(
        App(config),
        host=server.host,
        port=server.port,
        loop="auto",
        http="httptools",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(server.shutdown_seconds),
    )
    running = uvicorn.Server(options)
    running.run(sockets=None if listener is None else [listener])
    if not running.started:
        sys.exit(3)


def bound(host: str, port: int) -> socket.socket:
    """A socket on the shared port; each worker has its own, and the kernel spreads connections over them."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except OSError as fault:
        raise ConfigError(f"cannot listen on {host}:{port}: {fault.strerror}.", where="[server] port") from None
    return listener


class _Workers:
    """The parent: starts workers, starts dead ones again, passes signals on, and leaves last."""

    def __init__(self, config: Config, count: int) -> None:
        self._config = config
        self._count = count
        self._born: dict[int, float] = {}
        self._is_stopping = False

    def run(self) -> None:
        server = self._config.server
        reserved = bound(server.host, server.port)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)
        for _ in range(self._count):
            self._start()
        while self._born:
            self._wait()
        reserved.close()

    def _start(self) -> None:
        child = os.fork()
        if child:
            self._born[child] = time.monotonic()
            return
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            _serve(self._config, bound(self._config.server.host, self._config.server.port))
        except SystemExit:
            os._exit(3)
        except KeyboardInterrupt:
            os._exit(0)
        os._exit(0)

    def _wait(self) -> None:
        try:
            child, _ = os.wait()
        except (ChildProcessError, InterruptedError):
            self._born.clear()
            return
        age = time.monotonic() - self._born.pop(child, 0.0)
        if self._is_stopping:
            return
        print(f"toolwire: worker {child} ended and is started again", file=sys.stderr, flush=True)
        if age < _LEAST_LIFE:
            time.sleep(_LEAST_LIFE)
        self._start()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for child in self._born:
            os.kill(child, signal.SIGTERM)
