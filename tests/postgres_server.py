"""A PostgreSQL server of the tests' own: in a folder of its own, on a free port of 127.0.0.1, as a user who is not root."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import pytest

from tests.free_port import free_port

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # the machine does not crash during a test, only processes
    "max_connections": "100",
    "shared_buffers": "32MB",
}
_numbers = count()


def programs() -> Path:
    """The folder of initdb and postgres; skips the test if there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = [path for path in folders if (path / "initdb").exists()] or [
        Path(path).parent for path in [shutil.which("initdb")] if path
    ]
    if not found:
        reason = "PostgreSQL is not installed; `make packages` installs it where apt-get and root are available"
        print(f"skipped: {reason}")
        pytest.skip(reason)
    return found[-1]


class PostgresServer:
    """url: of the database. start() and stop() may be called repeatedly; the data stays until close()."""

    def __init__(self) -> None:
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="toolwire-postgres-"))
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self._folder, self._user, -1)
        self.port = free_port()
        self.url = f"postgresql://toolwire@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None
        initdb = [
            str(self._programs / "initdb"),
            "-D",
            str(self._data),
            "-A",
            "trust",
            "-U",
            "toolwire",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(
            [*initdb, "--locale=C"], check=True, stdout=subprocess.DEVNULL, user=self._user, cwd=self._folder
        )

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        settings = {**_SETTINGS, "port": str(self.port), "unix_socket_directories": str(self._folder)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = subprocess.Popen(
            [str(self._programs / "postgres"), "-D", str(self._data), *options],
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self._folder,
            start_new_session=True,
        )
        end = time.monotonic() + 120
        while subprocess.run(self._ready, stdout=subprocess.DEVNULL, check=False).returncode:
            assert time.monotonic() < end, "PostgreSQL did not start"
            time.sleep(0.02)

    @property
    def _ready(self) -> list[str]:
        return [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]

    def stop(self) -> None:
        """Ends it and all its connections, like a restart of the service."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """kill -9 of the server and all its processes."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
            (self._data / "postmaster.pid").unlink(missing_ok=True)

    def freeze(self, *, is_frozen: bool) -> None:
        """No process of it runs any more, but its connections stay."""
        assert self._process is not None
        number = signal.SIGSTOP if is_frozen else signal.SIGCONT
        for process in _descendants(self._process.pid):
            os.kill(process, number)

    def fill_disk(self, *, is_full: bool) -> None:
        """No process of it can write beyond the first megabyte of a file, as on a disk without space. It may end by that."""
        assert self._process is not None
        limit = f"--fsize={1 << 20 if is_full else 'unlimited'}:"
        for process in _descendants(
            self._process.pid
        ):  # some may have ended; only their own user may change the others
            subprocess.run(
                ["prlimit", "--pid", str(process), limit], user=self._user, check=False, stderr=subprocess.DEVNULL
            )

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def close(self) -> None:
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def new_space(self) -> str:
        """The URL of a place without tables."""
        return asyncio.run(self.new_space_url())

    async def new_space_url(self) -> str:
        """The same, in an event loop."""
        import asyncpg

        name = f"space_{os.getpid()}_{next(_numbers)}"
        connection = await asyncpg.connect(self.url)
        await connection.execute(f"CREATE SCHEMA {name}")
        await connection.close()
        return f"{self.url}?search_path={name}"

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=30)
            self._process = None


def _descendants(process: int) -> list[int]:
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(found for child in children for found in _descendants(int(child)))]


def _unprivileged() -> int | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return None
