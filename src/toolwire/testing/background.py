"""A gateway in a thread of this process, on a free port of 127.0.0.1, for commands and tests that need one for a while."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from ..backends.base import Backend
from ..config.file import Config, StoreConfig
from ..errors import InternalError
from ..server.app import App
from ..server.launch import Server, options

_STOP_SECONDS = 10.0


class BackgroundGateway:
    """Stores in memory unless a store is configured. Use it as a context manager, or call start() and close()."""

    def __init__(self, config: Config) -> None:
        server = replace(config.server, host="127.0.0.1", log="error")
        if config.store == StoreConfig():  # do not use the store in the user's home
            config = replace(config, store=StoreConfig(kind="memory"))
        self._config = replace(config, server=server)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._app: App | None = None
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Returns when the gateway accepts requests."""
        started = threading.Event()
        self._app = App(self._config)
        server = self._server = Server(options(self._config, self._app))
        server.announce = started.set
        self._thread = threading.Thread(target=server.run, args=([self._listener],), daemon=True)
        self._thread.start()
        while not started.wait(0.05):
            if not self._thread.is_alive():
                raise InternalError("the gateway of this command could not start.")
        return self

    def backend(self, name: str) -> Backend:
        """The back end itself, once the gateway has started."""
        assert self._app is not None
        return self._app.backend(name)

    def close(self) -> None:
        """Requests under way may finish within a few seconds."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_SECONDS)
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
