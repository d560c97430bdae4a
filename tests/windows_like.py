"""A program that takes away what Windows lacks, and then imports every module of toolwire or runs its command line.

`python tests/windows_like.py import` prints the modules that cannot be imported. `python tests/windows_like.py run ARGUMENTS` is `toolwire ARGUMENTS`.
This is not Windows: paths, file locks, consoles and the selector of the event loop stay those of this machine.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "syslog", "posix", "uvloop")
OS_NAMES = (
    *("fork", "forkpty", "wait", "killpg", "getuid", "geteuid", "getpgid", "setpgid", "setsid", "fchmod", "pread"),
    *("register_at_fork", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "mkfifo", "sysconf"),
)
SIGNALS = ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGALRM", "SIGQUIT", "SIGWINCH")
# Other libraries are imported first: they read sys.platform, and would load modules that only Windows has.
LIBRARIES = (
    *("cyclopts", "rich.console", "uvicorn.server", "httptools", "msgspec", "jsonschema_rs", "platformdirs", "ssl"),
    *("prometheus_client", "prompt_toolkit.shortcuts", "mcp", "asyncpg", "h2", "google.protobuf", "opentelemetry.sdk"),
    *("logging.handlers", "tempfile", "shutil", "multiprocessing", "concurrent.futures", "webbrowser", "pytest"),
)


def take_away() -> None:
    """Not what the event loop of this machine itself needs: AF_UNIX, waitpid, pidfd_open."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    for name in MODULES:
        sys.modules[name] = None  # an import of it fails
    for name in OS_NAMES:
        if hasattr(os, name):
            delattr(os, name)
    subprocess.signal = SimpleNamespace(**vars(signal))  # its kill() needs SIGKILL on this machine
    for name in (*SIGNALS, "pthread_sigmask", "setitimer", "alarm"):
        if hasattr(signal, name):
            delattr(signal, name)
    if hasattr(socket, "SO_REUSEPORT"):
        del socket.SO_REUSEPORT
    os.supports_dir_fd = set()
    select.select = _select_sockets
    asyncio.SelectorEventLoop.add_signal_handler = _not_supported
    asyncio.ProactorEventLoop = asyncio.SelectorEventLoop  # the default on Windows
    sys.platform = "win32"


def _select_sockets(*lists: object) -> tuple[list[object], list[object], list[object]]:
    raise OSError(10038, "An operation was attempted on something that is not a socket")


def _not_supported(*_: object) -> None:
    raise NotImplementedError


def import_all() -> int:
    import toolwire

    faults = []
    for found in pkgutil.walk_packages(toolwire.__path__, "toolwire."):
        if not found.name.endswith("__main__"):
            try:
                importlib.import_module(found.name)
            except Exception as error:
                faults.append(f"{found.name}: {type(error).__name__}: {error}")
    print("\n".join(faults) or "all modules were imported")
    return 1 if faults else 0


if __name__ == "__main__":
    take_away()
    if sys.argv[1] == "import":
        sys.exit(import_all())
    from toolwire.cli import main

    main(sys.argv[2:])
