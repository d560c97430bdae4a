"""A gateway for one session, in a thread of this process: it cannot outlive the command that started it."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec.structs import replace

from ...config.file import Config, StoreConfig
from ...errors import ConfigError
from .overlay import GATEWAY_FOLDERS, replace_folders

if TYPE_CHECKING:
    from ...server.launch import Server

_HOST = "127.0.0.1"
_STOP_SECONDS = 5.0


@contextmanager
def own_gateway(config: Config, place: Path, log: Path) -> Iterator[str]:
    """Listens on a free loopback port, and returns its address once it answers. Writes to place, to log, and to files that are configured."""
    former = dict(os.environ)
    os.environ.update(replace_folders(GATEWAY_FOLDERS, former, place))
    try:
        with socket.create_server((_HOST, 0), backlog=256) as listener, _open(log) as output:
            yield from _serve(_for_session(config, listener.getsockname()[1]), listener, output)
    finally:
        os.environ.clear()
        os.environ.update(former)


def _serve(config: Config, listener: socket.socket, output: TextIO) -> Iterator[str]:
    from ...server import App
    from ...server.launch import Server, options

    with redirect_stderr(output):  # the terminal belongs to the client, and the log uses the stderr of this moment
        app = App(config)
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, [app.log_handler()]
    server = Server(options(config, app))
    is_started = threading.Event()
    server.announce = is_started.set
    thread = threading.Thread(target=_run, args=(server, listener, is_started), daemon=True, name="toolwire-gateway")
    thread.start()
    is_started.wait()
    try:
        if not server.started:
            app.close_log()
            raise ConfigError(f"the gateway did not start: {_first_line(output.name)}", where="run")
        yield f"http://{_HOST}:{config.server.port}"
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        root.handlers = handlers
        app.close_log()


def _run(server: Server, listener: socket.socket, is_over: threading.Event) -> None:
    try:
        with suppress(SystemExit):  # of a start that failed, which the log describes
            server.run(sockets=[listener])
    finally:
        is_over.set()


def _for_session(config: Config, port: int) -> Config:
    """One process on loopback. The store in the home folder is replaced by memory; a configured one stays."""
    server = replace(config.server, host=_HOST, port=port, shutdown_seconds=1.0, drain_seconds=0.0)
    is_default = config.store.kind == "sqlite" and not config.store.path
    store = StoreConfig(kind="memory") if is_default else config.store
    return replace(config, server=server, store=store, cluster=None)


def _open(log: Path) -> TextIO:
    try:
        return log.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"this file cannot be written: {error.strerror}.", where=str(log)) from None


def _first_line(log: str) -> str:
    lines = Path(log).read_text("utf-8", "replace").splitlines()
    return lines[0] if lines else "its log is empty."
