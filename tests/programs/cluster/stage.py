"""Three gateways with two workers each, behind nginx, with one PostgreSQL and one simulated Cursor service."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.free_port import free_port
from tests.postgres_server import PostgresServer
from tests.programs.cursor.stage import RUN_PARKED, VERSION, Setting, simulating
from tests.programs.stage import KEY, serving
from toolwire.backends.cursor.simulator.settings import API_KEY

OTHER_KEY = "sk-of-another-client"
SECRET = "a-secret-that-all-gateways-share"


class Gateways(NamedTuple):
    """address: of nginx. ports: of the gateways. folder: has their logs, and the journal of the simulator."""

    address: str
    ports: tuple[int, ...]
    folder: Path
    processes: tuple[int, ...]

    def log(self, number: int) -> str:
        return (self.folder / f"gateway-{number}.log").read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def gateways(folder: Path, database: PostgresServer, count: int = 3, workers: int = 2) -> Iterator[Gateways]:
    nginx = nginx_program()
    ports = tuple(free_port() for _ in range(count))
    with contextlib.ExitStack() as stack:
        upstream = stack.enter_context(simulating(RUN_PARKED, folder))
        started = []
        for number, port in enumerate(ports):
            path = folder / f"gateway-{number}.toml"
            path.write_text(_config(RUN_PARKED, upstream, port, database.url), encoding="utf-8")
            serve = ["-m", "toolwire", "serve", "--config", str(path), "--workers", str(workers)]
            command = ["/usr/bin/env", f"CURSOR_SECRET={API_KEY}", f"CLUSTER={SECRET}", sys.executable, *serve]
            started.append(stack.enter_context(serving(command, port, folder / f"gateway-{number}.log")))
        front = free_port()
        (folder / "nginx.conf").write_text(_nginx(front, ports, folder), encoding="utf-8")
        command = [nginx, "-p", str(folder), "-e", str(folder / "nginx-error.log"), "-c", str(folder / "nginx.conf")]
        stack.enter_context(serving(command, front, folder / "nginx.log"))
        yield Gateways(f"http://127.0.0.1:{front}", ports, folder, tuple(process.pid for process in started))


def nginx_program() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        reason = "nginx is not installed; `make packages` installs it where apt-get and root are available"
        print(f"skipped: {reason}")
        pytest.skip(reason)
    return found


def _config(setting: Setting, upstream: int, port: int, url: str) -> str:
    return f"""
[server]
port = {port}
keys = ["{KEY}", "{OTHER_KEY}"]
[store]
url = "{url}"
connections = 4
[cluster]
secret = "env:CLUSTER"
[backends.cursor]
kind = "cursor"
base_url = "http://127.0.0.1:{upstream}"
{setting.account} = "env:CURSOR_SECRET"
client_type = "cli"
client_version = "{VERSION}"
transport = "{setting.transport}"
park_seconds = {setting.parked}
retries = 0
[backends.scripted]
kind = "scripted"
[models]
"a-model" = "cursor/a-model"
"""


def _nginx(port: int, ports: tuple[int, ...], folder: Path) -> str:
    """Round robin, a new connection for each request, and no buffering of streams."""
    servers = "".join(f"server 127.0.0.1:{one};" for one in ports)
    temporary = "".join(
        f"{kind}_temp_path {folder}/nginx-{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
worker_processes 1;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {temporary}
    map $http_upgrade $connection_upgrade {{ default upgrade; "" ""; }}
    upstream gateways {{ {servers} }}
    server {{
        listen 127.0.0.1:{port};
        client_max_body_size 64m;
        location / {{
            proxy_pass http://gateways;
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection $connection_upgrade;
            proxy_buffering off;
            proxy_read_timeout 600s;
            add_header x-gateway $upstream_addr always;
        }}
    }}
}}
"""
