"""Starting the server: uvicorn on uvloop and httptools, in one process or in several that share the port."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from secrets import token_hex
from types import FrameType
from typing import NoReturn

import uvicorn
from msgspec import Struct
from msgspec.structs import replace
from prometheus_client.multiprocess import mark_process_dead

from ..backends.mounts import mount_kinds
from ..backends.registry import load
from ..cluster.endpoint import ClusterEndpoint
from ..cluster.node import ClusterNode, bind_internal
from ..config.file import ClusterConfig, Config, ServerConfig
from ..config.secret import Secret
from ..errors import ConfigError, GatewayError, quote
from .app import App
from .assembly.reload import Reload
from .connections import Connections, connections_wanted
from .protocol import Protocol

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has neither
_RELOAD: signal.Signals | None = getattr(signal, "SIGUSR1", None)
_PASSED_ON = tuple(number for number in (*_SIGNALS, _HANGUP, _RELOAD) if number is not None)
_NOT_STARTED = 3
_PARENT_SECONDS = 0.5  # between two checks of a worker whether its parent lives
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
_LEAST_LIFE = 2.0  # a worker that dies sooner is not started again at once


def _nothing() -> None:
    pass


def run(
    config: Config,
    *,
    workers: int = 1,
    announce: Callable[[], None] = _nothing,
    reread: Callable[[], Config] | None = None,
) -> None:
    """announce is called once, as soon as somebody listens. reread: reads the configuration again, in any thread."""
    config = _for_workers(config) if workers > 1 else config
    _prepare_mounts()
    if workers <= 1:
        _serve(Life(config, reread, announce=announce), None)
        return
    if not hasattr(os, "fork") or not hasattr(socket, "SO_REUSEPORT"):
        raise ConfigError("several workers need a system with fork and SO_REUSEPORT.", where="--workers")
    with tempfile.TemporaryDirectory(prefix="toolwire-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        code = _Workers(config, workers, announce, None if reread is None else lambda: _for_workers(reread())).run()
    if code:
        sys.exit(code)


def _prepare_mounts() -> None:
    """Before any worker starts. A failure is printed, and the rest of the gateway works without the mount."""
    for kind in mount_kinds():
        try:
            kind.prepare(os.environ)
        except ConfigError as error:
            _say(f"toolwire: {error.sentence()}")


def _for_several(config: Config) -> Config:
    """Some back ends live in one process, and a request may reach any worker. With a store that the workers share they forward it; without
    one, a configured back end is an error, and a discovered one is removed."""
    if config.store.kind != "memory":
        return config
    single = [backend for backend in config.backends if load(backend.kind).is_single_process]
    if single and config.path:
        raise ConfigError(
            f"found the back end {quote(single[0].name)} of kind {quote(single[0].kind)} and several workers; "
            "its connections reach only one of them.",
            where="--workers",
            hint="Start with one worker, without this back end, or with a store on disk.",
        )
    return replace(config, backends=tuple(backend for backend in config.backends if backend not in single))


def _for_workers(config: Config) -> Config:
    return _unrecorded(_as_cluster(_for_several(config)))


def _unrecorded(config: Config) -> Config:
    """The inspector shows the flows of the worker that answers it, so several workers record only if the owner wants that."""
    is_auto = config.flows.enabled == "auto"
    return replace(config, flows=replace(config.flows, enabled=False)) if is_auto else config


def _as_cluster(config: Config) -> Config:
    """Workers forward requests to each other, with a secret that only they know unless the owner configured one."""
    if config.cluster is not None or config.store.kind == "memory":
        return config
    return replace(config, cluster=ClusterConfig(secret=_own_secret(), is_own=True))


@cache
def _own_secret() -> Secret:
    """The same one when the configuration is read again."""
    return Secret(token_hex(32))


class Options(uvicorn.Config):
    """What uvicorn is to do, and the limits of its connections."""

    def __init__(self, server: ServerConfig, app: App | ClusterEndpoint) -> None:
        super().__init__(
            app,
            host=server.host,
            port=server.port,
            loop="auto",
            http=Protocol,
            ws="none",
            interface="asgi3",  # App.__call__ returns coroutines and is none itself
            lifespan="off" if isinstance(app, ClusterEndpoint) else "on",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=2048,
            timeout_graceful_shutdown=max(1, round(server.shutdown_seconds)),
        )
        self.limits = server


def options(config: Config, app: App) -> Options:
    return Options(config.server, app)


class Life(Struct, frozen=True):
    """One process of the gateway. parent: of a worker; it ends with it. number: of the worker, from 0."""

    config: Config
    reread: Callable[[], Config] | None = None
    parent: int = 0
    announce: Callable[[], None] = _nothing
    number: int = 0


class Server(uvicorn.Server):
    """The first SIGINT or SIGTERM lets the answers under way finish and the process end well; the second one ends it at once.

    SIGUSR1 reads the configuration again. So does SIGHUP without a terminal, as services expect. With a terminal it is like the first
    SIGTERM, however often it comes: a terminal that closes sends it more than once.
    """

    parent = 0  # of a worker: when it is gone, nobody is left to stop it
    announce = staticmethod(_nothing)
    node: ClusterNode | None = None
    _signals = 0

    def __init__(self, config: Options, files: int | None = None) -> None:
        """files: how many this process may open, None for any number."""
        super().__init__(config)
        self.server_state: Connections = Connections(config.limits, files)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        self._has_terminal = has_terminal()
        with _handled(_HANGUP, self._hang_up), _handled(_RELOAD, self._reload):
            super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in [one for server in self.servers for one in server.sockets]:
            _keep_alive(listener)
        if self.node is not None:
            await self._listen_to_peers(self.node)
        self.server_state.watch(self._loop)
        if self.parent:
            self._check_parent()
        if _RELOAD is not None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {_RELOAD})
        self.announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        if isinstance(app, App):
            app.leave()
        await super().shutdown(sockets)

    async def _listen_to_peers(self, node: ClusterNode) -> None:
        config = Options(self.server_state.limits, node.endpoint)
        config.load()

        def protocol() -> Protocol:
            return Protocol(config=config, server_state=self.server_state, app_state={}, _loop=self._loop)

        self.servers.append(await self._loop.create_server(protocol, sock=node.listener, backlog=config.backlog))

    def _check_parent(self) -> None:
        if os.getppid() != self.parent:
            self.should_exit = True
        else:
            self._loop.call_later(_PARENT_SECONDS, self._check_parent)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals += 1
        app, wait = self.config.app, self.server_state.limits.drain_seconds
        if self._signals == 1 and wait and isinstance(app, App):  # load balancers notice before it refuses connections
            app.is_draining = True
            self._loop.call_soon_threadsafe(self._loop.call_later, wait, self._leave)
            return
        if self._signals == 2:  # what was under way ends as if its clients had left
            self._loop.call_soon_threadsafe(self._drop_all)
        self.force_exit = self._signals > 2
        self.should_exit = True

    def _leave(self) -> None:
        self.should_exit = True

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        if self._has_terminal:
            self.should_exit = True
        else:
            self._reload(number, frame)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        app = self.config.app
        if isinstance(app, App):
            self._loop.call_soon_threadsafe(app.reload.start)

    def _drop_all(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def has_terminal() -> bool:
    """Whether this process has a controlling terminal, which sends SIGHUP when it closes."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except (OSError, AttributeError):
        return False
    return True


@contextlib.contextmanager
def _handled(number: signal.Signals | None, handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Only a signal without a handler: nohup ignores SIGHUP, so that a program outlives its terminal, and profilers use SIGUSR1."""
    is_main = threading.current_thread() is threading.main_thread()
    if number is None or not is_main or signal.getsignal(number) != signal.SIG_DFL:
        yield
        return
    former = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, former)


def _serve(life: Life, listener: socket.socket | None) -> None:
    config = life.config
    node = _node(config, life.number)
    app = App(config, cluster=node, reload=Reload(life.reread, life.parent))
    # What uvicorn and asyncio have to say takes the same way as our own lines: a full pipe must not stop them either.
    logging.basicConfig(handlers=[app.log_handler()], level=logging.WARNING, force=True)
    running = Server(options(config, app), _allowed_files(2 * connections_wanted(config.server) + 512))
    running.parent = life.parent
    running.announce = life.announce
    running.node = node
    try:
        running.run(sockets=None if listener is None else [listener])
    finally:
        app.close_log()
    if not running.started:
        sys.exit(_NOT_STARTED)


def _node(config: Config, number: int) -> ClusterNode | None:
    """Raises ConfigError. A forwarded request is larger than the client's: it has the stored history."""
    if config.cluster is None:
        return None
    return ClusterNode(config.cluster, bind_internal(config.cluster, number), 4 * (config.server.max_body_mb << 20))


def _allowed_files(wanted: int) -> int | None:
    """The limit of open files, raised if it may be: 1024 is usual, and a stream needs two."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < raised:
        with contextlib.suppress(ValueError, OSError):  # a system may allow less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    return None if soft == resource.RLIM_INFINITY else soft


def _keep_alive(listener: socket.socket) -> None:
    """So that the kernel ends connections whose client has vanished. Accepted connections inherit it."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, seconds in _KEEP_ALIVE.items():
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), seconds)


def bound(host: str, port: int) -> socket.socket:
    """A socket on the shared port; each worker has its own, and the kernel spreads connections over them."""
    return _bound(host, port, is_shared=True)


def _reserved(host: str, port: int) -> socket.socket:
    """The same before there are workers: one that others listen on is taken, also where they would share it, as the workers
    of another gateway would."""
    _bound(host, port, is_shared=False).close()
    return bound(host, port)


def _bound(host: str, port: int, *, is_shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(is_shared))
        listener.bind((host, port))
    except OSError as fault:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {fault.strerror}.", where="[server] port") from None
    return listener


class _Workers:
    """The parent: starts workers, starts dead ones again, passes signals on, and leaves last."""

    def __init__(
        self, config: Config, count: int, announce: Callable[[], None], reread: Callable[[], Config] | None
    ) -> None:
        self._config = config
        self._count = count
        self._announce = announce
        self._reread = reread
        self._has_terminal = has_terminal()
        self._born: dict[int, float] = {}
        self._numbers: dict[int, int] = {}  # of each worker, from 0
        self._is_stopping = False
        self._exit_code = 0

    def run(self) -> int:
        """The exit code: 0 unless the workers cannot start."""
        server = self._config.server
        try:
            reserved = _reserved(server.host, server.port)
        except ConfigError as error:
            _say(f"toolwire: {error.sentence()}")
            return _NOT_STARTED
        for number in _SIGNALS:
            signal.signal(number, self._stop)
        with _handled(_HANGUP, self._hang_up), _handled(_RELOAD, self._reload):
            for _ in range(self._count):
                self._start()
            while self._born:
                self._wait()
        reserved.close()
        return self._exit_code

    def _start(self) -> None:
        """One more, unless all are to stop.

        Signals wait until the child is known here and has laid down its parent's handler: before that, the one that is meant
        for it would be heard by nobody.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
        try:
            if not self._is_stopping:
                self._fork()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)

    def _fork(self) -> None:
        parent = os.getpid()
        number = next(number for number in range(self._count) if number not in self._numbers.values())
        child = os.fork()
        if not child:
            _work(Life(self._config, self._reread, parent, self._announce, number))
        self._born[child] = time.monotonic()
        self._numbers[child] = number
        self._announce = _nothing

    def _wait(self) -> None:
        try:
            child, status = os.wait()
        except ChildProcessError:
            self._born.clear()
            return
        age = time.monotonic() - self._born.pop(child, 0.0)
        self._numbers.pop(child, None)
        mark_process_dead(child)  # type: ignore[no-untyped-call] # the library has no types here
        if self._is_stopping:
            return
        if os.waitstatus_to_exitcode(status) == _NOT_STARTED:  # what stops one stops all: it has said what it is
            self._exit_code = _NOT_STARTED
            self._stop(signal.SIGTERM, None)
            return
        _say(f"toolwire: worker {child} ended and is started again")
        if age < _LEAST_LIFE:
            time.sleep(_LEAST_LIFE)
        self._start()

    def _hang_up(self, number: int, frame: FrameType | None) -> None:
        if self._has_terminal:
            self._stop(number, frame)
        else:
            self._reload(number, frame)

    def _reload(self, number: int, frame: FrameType | None) -> None:
        """For workers that start from now on, and for those that run. Each of them reports an error in the file itself."""
        if self._reread is not None and not self._is_stopping:
            with contextlib.suppress(GatewayError):
                self._config = self._reread()
            for child in self._born:
                _signal(child, _RELOAD or signal.SIGTERM)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._is_stopping = True
        for child in self._born:
            _signal(child, number)


def _work(life: Life) -> NoReturn:
    """The life of a worker; it never returns into its parent's code."""
    code, server = 1, life.config.server
    try:
        os.setpgid(0, 0)  # so that Ctrl-C reaches the parent alone, and each worker hears of it once
        for number in _PASSED_ON:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        # SIGUSR1 waits until the server has started.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number for number in _PASSED_ON if number != _RELOAD])
        _serve(life, bound(server.host, server.port))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except GatewayError as error:
        _say(f"toolwire: {error.sentence()}")
    except BaseException:
        _say(traceback.format_exc())
    finally:
        os._exit(code)


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number if number in (_HANGUP, _RELOAD) else signal.SIGTERM)


def _say(words: str) -> None:
    """Skips the message if stderr is full: a parent that waits for its reader cannot look after its workers. Windows can only test sockets, and has no workers."""
    if sys.platform == "win32" or select.select([], [sys.stderr], [], 0)[1]:
        print(words, file=sys.stderr, flush=True)
