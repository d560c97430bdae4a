"""`toolwire serve`: starts the gateway and prints how to reach it."""

from __future__ import annotations

import asyncio
import difflib
import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from cyclopts import Parameter

from .. import __version__
from ..catalog.found import found_config
from ..catalog.router import Router, router_for
from ..config.file import BackendConfig, Config, ServerConfig, default_store_path, with_address
from ..errors import ConfigError, quote

ConfigFlag: TypeAlias = Annotated[
    Path | None,
    Parameter(help="Configuration file; by default ./toolwire.toml, then the one in your configuration folder."),
]

_MAX_WORKERS = 64
_ANY_MODEL = "/MODEL"
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # and the address for clients on this machine


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

    def read() -> Config:
        return with_address(asyncio.run(found_config(config, port=port, is_serving=True)), host, port)

    served = read()
    for warning in (*served.warnings, *alias_warnings(served, router_for(served))):
        print(f"warning: {warning}", file=sys.stderr)

    check_port(served.server)
    from ..server import run

    run(served, workers=workers, announce=partial(announce, served), reread=read)


def alias_warnings(config: Config, router: Router) -> Iterator[str]:
    """Aliases whose target begins with a name that is no back end, and that no known model list contains."""
    names = {backend.name for backend in config.backends}
    for alias, target in config.aliases.items():
        group = config.groups.get(alias)
        for model in (target,) if group is None else group.models:
            prefix, slash, _ = model.partition("/")
            route = router.route_or_none(model)
            if "*" in model or not slash or prefix in names or (route is not None and not route.is_guess):
                continue
            end = f"go to the default, {quote(route.backend)}" if route is not None else "fail"
            near = difflib.get_close_matches(prefix, names, n=1)
            hint = f"Did you mean {quote(near[0])}?" if near else f"The back ends are {', '.join(sorted(names))}."
            yield (
                f"[models] {quote(alias)}: there is no back end {quote(prefix)}. Unless a back end lists "
                f"{quote(model)}, requests {end}. {hint}"
            )


def check_port(server: ServerConfig) -> None:
    """Raises UnusablePort with what to do. Workers of one gateway share a port, so it is only tried, not reserved."""
    error = bind_error(server, server.port)
    if error is None:
        return
    if error.errno != errno.EADDRINUSE:
        message = f"{server.host}:{server.port} cannot be used: {error.strerror or type(error).__name__}."
        raise UnusablePort(message, hint="Choose another address with --host and --port, or under [server].")
    user = listener_at(server.port)
    ports = range(server.port + 1, min(server.port + 50, 65536))
    free = next((port for port in ports if bind_error(server, port) is None), None)
    hint = (
        f"Stop that one, or run: toolwire serve --port {free}" if free else "Stop that one, or choose another --port."
    )
    raise UnusablePort(f"{server.host}:{server.port} is already in use{f' by {user}' if user else ''}.", hint=hint)


def bind_error(server: ServerConfig, port: int) -> OSError | None:
    """The error that a server would get at this port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(server.host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as listener:
            # As servers do: an address with connections in TIME_WAIT is free. On Windows the option would allow a port that is in use.
            if os.name == "posix":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1)
    except OSError as error:
        return error
    return None


class UnusablePort(ConfigError):
    """The address cannot be listened on."""

    exit_code = 3


def listener_at(port: int) -> str:
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
    yield f"toolwire {__version__} at {address}{_reach(config.server)}"
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
    model = first_model(config)
    yield f"Try it{' (`toolwire models` lists the names)' if model.endswith(_ANY_MODEL) else ''}:"
    yield f"  {_first_request(config, address, model)}"


def address_of(server: ServerConfig) -> str:
    """The address for clients on this machine."""
    host = _EVERY_ADDRESS.get(server.host, server.host)
    return f"http://[{host}]:{server.port}" if ":" in host else f"http://{host}:{server.port}"


def _reach(server: ServerConfig) -> str:
    """What the address for clients does not say: that the gateway listens on every address of this machine."""
    if server.host not in _EVERY_ADDRESS:
        return ""
    return f", listening on {server.host}:{server.port}, every address of this machine"


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


def first_model(config: Config) -> str:
    """A real model, as the configuration names it; the demo model only if there is no other back end.

    Nothing is requested from back ends here, so a name that only they know is left open.
    """
    router = router_for(config)
    for alias in router.aliases:
        route = router.route_or_none(alias)
        if route is not None and not route.is_guess:
            return alias
    real = [backend for backend in config.backends if backend.kind not in ("demo", "scripted") and not backend.missing]
    real.sort(key=lambda backend: (not backend.models, backend.name != config.server.default))
    if not real:
        return "demo/echo-tools"
    models = [model for model in real[0].models if "embed" not in model.lower()]
    return f"{real[0].name}{f'/{models[0]}' if models else _ANY_MODEL}"


def _first_request(config: Config, address: str, model: str) -> str:
    key = " -H 'Authorization: Bearer YOUR_KEY'" if config.server.keys else ""
    body = msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "hello"}]}).decode()
    return f"curl {address}/v1/chat/completions{key} -H 'Content-Type: application/json' -d '{body}'"
