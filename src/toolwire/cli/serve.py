"""`toolwire serve`: starts the gateway and prints how to reach it."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from .. import __version__
from ..catalog.found import found_config
from ..config.file import BackendConfig, Config, ServerConfig, default_store_path, with_address
from ..errors import ConfigError, quote

ConfigFlag: TypeAlias = Annotated[
    Path | None,
    Parameter(help="Configuration file; by default ./toolwire.toml, then the one in your configuration folder."),
]

_MAX_WORKERS = 64


def serve(
    *,
    host: Annotated[
        str | None, Parameter(help="Address to listen on; overrides the configuration (default 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None, Parameter(help="Port to listen on; overrides the configuration (default 18741).")
    ] = None,
    config: ConfigFlag = None,
    workers: Annotated[int, Parameter(help=f"Number of processes, at most {_MAX_WORKERS}.")] = 1,
) -> None:
    """Start the gateway."""
    if not 1 <= workers <= _MAX_WORKERS:
        raise ConfigError(f"found {workers}; expected a whole number from 1 to {_MAX_WORKERS}.", where="--workers")
    served = with_address(asyncio.run(found_config(config, port=port, is_serving=True)), host, port)
    for warning in served.warnings:
        print(f"warning: {warning}", file=sys.stderr)

    check_port(served.server)
    from ..server import run

    run(served, workers=workers, announce=partial(announce, served))


def check_port(server: ServerConfig) -> None:
    """Raises UnusablePort with what to do. Workers of one gateway share a port, so it is only tried, not reserved."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    for port in (server.port, *range(server.port + 1, min(server.port + 50, 65536))):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((server.host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    return  # the server reports it
                continue
        if port == server.port:
            return
        user = _listener_at(server.port)
        hint = f"Stop that one, or run: toolwire serve --port {port}"
        raise UnusablePort(f"{server.host}:{server.port} is already in use{f' by {user}' if user else ''}.", hint=hint)


class UnusablePort(ConfigError):
    """The address cannot be listened on."""

    exit_code = 3


def _listener_at(port: int) -> str:
    """The program that listens on this port of this machine, where the system tells."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(link) in inodes for link in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text().strip()
                return f"{quote(name)[1:-1]} (process {folder.name})"
    return ""


def banner(config: Config) -> Iterator[str]:
    """The lines that are printed at the start."""
    address = address_of(config.server)
    yield f"toolwire {__version__} at {address}"
    yield f"  configuration      {config.path or 'no file; back ends were found on this machine'}"
    for backend in config.backends:
        yield f"  back end           {_describe_backend(backend, config.server.default)}"
        yield from _local_tools(backend)
    for server in config.mcp_servers:
        yield f"  MCP server         {server.name} ({server.url or server.command[0]})"
    yield f"  OpenAI clients     base URL {address}/v1"
    yield f"  Anthropic clients  base URL {address}"
    yield f"  API key            {'one of the keys of [server]' if config.server.keys else 'any; it only separates stored responses of different clients'}"
    store = config.store
    file = f"{store.path or default_store_path()}, for {store.max_age_days} days; change it under [store]"
    places = {"memory": "in memory, until this process ends", "postgres": "in PostgreSQL"}
    yield f"  stored responses   {places.get(store.kind, file)}"
    yield "Try it:"
    yield f"  {_first_request(config, address)}"


def address_of(server: ServerConfig) -> str:
    """The address for clients on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def announce(config: Config) -> None:
    """Ignores a closed stdout, also at exit, when Python flushes it again."""
    try:
        print("\n".join(banner(config)), flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe_backend(backend: BackendConfig, default: str) -> str:
    details = [backend.kind if backend.kind != backend.name else "", backend.base_url]
    details += [f"{len(backend.models)} models" if backend.models else "", backend.missing]
    details += ["the default" if backend.name == default else ""]
    text = ", ".join(detail for detail in details if detail)
    return f"{backend.name} ({text})" if text else backend.name


def _local_tools(backend: BackendConfig) -> Iterator[str]:
    """Which tools a remote service may run on this machine."""
    if not backend.local_tools:
        return
    from ..backends import registry

    yield f"    on this machine  {', '.join(backend.local_tools)} in {Path(backend.workspace or '.').resolve()}"
    try:
        found = registry.load(backend.kind).confinement(backend)
    except ConfigError as error:
        yield f"    on this machine  {error.sentence()}"
        return
    if found is not None:
        yield f"    on this machine  {found.text}"


def _first_request(config: Config, address: str) -> str:
    key = " -H 'Authorization: Bearer YOUR_KEY'" if config.server.keys else ""
    body = '{"model": "demo/echo-tools", "messages": [{"role": "user", "content": "hello"}]}'
    return f"curl {address}/v1/chat/completions{key} -H 'Content-Type: application/json' -d '{body}'"
