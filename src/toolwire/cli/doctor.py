"""`toolwire doctor`: checks the installation and advises how to fix problems."""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.found import found_config, probe
from ..catalog.router import router_for
from ..config.file import (
    BackendConfig,
    Config,
    McpServerConfig,
    SearchConfig,
    ServerConfig,
    StoreConfig,
    default_store_path,
)
from ..errors import ConfigError, GatewayError, quote
from .models import ModelListing, ask, gateway_of, plain
from .serve import ConfigFlag, address_of, alias_warnings, bind_error, listener_at

LOCAL_SECONDS = 2.0
_MAX_NAMED = 5


class Finding(Struct, frozen=True, kw_only=True):
    """advice: what to do. is_note: neither in order nor certainly wrong, such as something that could not be checked."""

    subject: str
    text: str
    is_wrong: bool = False
    is_note: bool = False
    advice: str = ""

    @property
    def mark(self) -> str:
        return "WRONG" if self.is_wrong else "note" if self.is_note else "ok"


def doctor(*, config: ConfigFlag = None) -> int:
    """Check configuration, address, store, every back end and every MCP server; exit with 1 if there is a problem."""
    findings = asyncio.run(examine(config))
    for finding in findings:
        print(plain(f"{finding.mark:5} {finding.subject}: {finding.text}", 600))
        if finding.advice:
            print(plain(f"      {finding.advice}", 600))
    wrong = sum(finding.is_wrong for finding in findings)
    print(_summary(wrong, sum(finding.mark == "note" for finding in findings), len(findings)))
    return 1 if wrong else 0


def _summary(wrong: int, notes: int, checks: int) -> str:
    if wrong:
        return f"{wrong} of {checks} checks found something wrong."
    return f"Nothing is wrong; read the lines with note ({notes})." if notes else "Everything is in order."


async def examine(path: Path | None) -> list[Finding]:
    config = await found_config(path)
    gateway = await gateway_of(config)
    answers = await asyncio.gather(*(ask(backend, gateway=gateway) for backend in config.backends))
    return [
        _of_configuration(config),
        *(Finding(subject="configuration", text=warning, is_note=True) for warning in config.warnings),
        await _of_address(config.server),
        await of_postgres(config.store) if config.store.kind == "postgres" else of_store(config.store),
        *([_of_search(config.search)] if config.search is not None and config.search.kind == "command" else []),
        *(
            of_backend(backend, answer, is_running=bool(gateway.status))
            for backend, answer in zip(config.backends, answers, strict=True)
        ),
        *(finding for backend in config.backends for finding in of_local_tools(backend)),
        *of_aliases(config, answers),
        *await asyncio.gather(*map(of_mcp_server, config.mcp_servers)),
    ]


def of_store(store: StoreConfig) -> Finding:
    """Whether `serve` can use the store. Opens an existing file, and does not create a new one."""
    from ..memory.store import open_store

    file = Path(store.path) if store.path else default_store_path()
    if store.kind == "memory":
        return Finding(subject="store", text="in memory.")
    if not _exists(file):
        return _of_folder(file, is_wrong=bool(store.path))
    try:
        opened = open_store(
            kind=store.kind,
            path=store.path,
            default_path=file,
            max_age_days=store.max_age_days,
            max_mb=store.max_mb,
        )
    except ConfigError as error:
        return Finding(subject="store", text=error.sentence(), is_wrong=True)
    return Finding(subject="store", text=opened.warning or f"{file} can be used.", is_note=bool(opened.warning))


async def of_postgres(store: StoreConfig) -> Finding:
    """Connects, and creates the tables if they are missing."""
    from ..memory.store import store_for

    try:
        opened = store_for(store, connections=1)
        why = await opened.store.open()
        await opened.store.close()
    except ConfigError as error:
        return Finding(subject="store", text=error.sentence(), is_wrong=True)
    return Finding(subject="store", text=why or "PostgreSQL can be used.", is_wrong=bool(why))


def of_aliases(config: Config, answers: Sequence[ModelListing]) -> Iterator[Finding]:
    """Aliases without a route. Models of back ends that do not answer are unknown."""
    router = router_for(config)
    is_known = True
    for backend, answer in zip(config.backends, answers, strict=True):
        models = answer.models or backend.models
        router.note_models(backend.name, models)
        is_known = is_known and bool(models)
    routed = dict(config.aliases)
    for alias, target in config.aliases.items():
        name = target if "*" in alias else alias  # a pattern itself is not a name
        if "*" not in name and router.route_or_none(name) is None:
            del routed[alias]
            text = (
                f"its target is {quote(target)}, and no back end{'' if is_known else ' that answers'} has that model."
            )
            advice = 'Write "BACKEND/MODEL" under [models], with the name of a back end, or set default under [server].'
            yield Finding(
                subject=f"alias {quote(alias)}", text=text, is_wrong=is_known, is_note=not is_known, advice=advice
            )
    for warning in alias_warnings(replace(config, aliases=routed), router):
        yield Finding(subject="aliases", text=warning, is_note=True)


def of_backend(backend: BackendConfig, answer: ModelListing, *, is_running: bool = True) -> Finding:
    """is_running: a gateway runs, so that windows of VS Code could be connected."""
    subject = f"back end {backend.name}"
    if backend.kind == "vscode" and not answer.models:
        why = "no window offers a model" if is_running else "unknown until a gateway runs"
        text = f"{why}; `toolwire vscode status` shows what is missing."
        return Finding(subject=subject, text=text, is_wrong=is_running, is_note=not is_running)
    if answer.error is None:
        count = len(answer.models)
        program = f" It is {answer.program}." if answer.program else ""
        listed = f"answers, and lists {count} model{'' if count == 1 else 's'}."
        # A problem that only the first request would show.
        is_outdated = backend.kind == "cursor" and not backend.client_version
        missing = (
            "Set client_version: the service refuses clients without a version as outdated." if is_outdated else ""
        )
        if strange := [model for model in backend.models if model not in answer.models][:_MAX_NAMED]:
            listed = f"{listed[:-1]}; missing from the list, but configured: {', '.join(strange)}."
        is_note = bool(strange) or not count
        return Finding(
            subject=subject, text=f"{listed}{program}", is_wrong=bool(missing), is_note=is_note, advice=missing
        )
    if answer.error.status == 404 and backend.models and not backend.missing:
        return Finding(subject=subject, text="answers; it has no model list, so the models of the file are used.")
    return Finding(subject=subject, text=answer.error.sentence(), is_wrong=True, advice=_advice(backend, answer.error))


def of_local_tools(backend: BackendConfig) -> Iterator[Finding]:
    """Whether commands that a remote service chooses are confined on this machine."""
    if "shell" not in backend.local_tools:
        return
    from ..backends import registry

    subject = f"back end {backend.name}, commands"
    try:
        found = registry.load(backend.kind).confinement(backend)
    except ConfigError as error:
        yield Finding(subject=subject, text=error.sentence(), is_wrong=True)
        return
    if found is not None:
        yield Finding(subject=subject, text=found.text, is_wrong=found.is_refused, advice=found.hint)


async def of_mcp_server(server: McpServerConfig) -> Finding:
    """Starts it, and reads its tools."""
    from ..pipeline.mounted.offer import approval_of
    from ..pipeline.mounted.servers import source_of

    subject = f"MCP server {server.name}"
    try:
        async with source_of(server) as source:
            tools = await source.tools()
            warnings = source.warnings
    except ConfigError as error:
        advice = f"Correct [mcp.servers.{server.name}]; until then its tools are left out."
        return Finding(subject=subject, text=error.message, is_wrong=True, advice=advice)
    approvals = [approval_of(server, tool.remote, changes_things=tool.changes_things) for tool in tools]
    counts = f"{approvals.count('allow')} are run by the gateway, {approvals.count('ask')} need the client's approval"
    text = f"works, with {len(tools)} tools: {counts}, {approvals.count('deny')} are denied."
    advice = " ".join(warnings[:_MAX_NAMED])
    return Finding(subject=subject, text=text, is_note=bool(warnings), advice=advice)


def _advice(backend: BackendConfig, error: GatewayError) -> str:
    if backend.missing:
        what = "one of them" if backend.missing.startswith("neither") else "it"
        return f"Set {what} before you start toolwire, or remove [backends.{backend.name}]."
    if error.hint:
        return ""  # it is part of the message
    if error.status in (401, 403):
        return "It refuses the key: check that the key is complete, still valid, and for this base_url."
    if error.status == 404:
        return f"Check that base_url is right ({backend.base_url}); if it has no model list, set models = [...]."
    if error.status == 429:
        return "It rate-limits this key: wait, or check the account."
    return f"Check that {backend.base_url} is running and reachable from here." if backend.base_url else ""


def _of_configuration(config: Config) -> Finding:
    if config.path:
        return Finding(subject="configuration", text=f"{config.path} is in use.")
    names = ", ".join(backend.name for backend in config.backends)
    return Finding(subject="configuration", text=f"no file; found on this machine: {names}.")


def _exists(path: Path) -> bool:
    """True as well for a file in a folder that cannot be read."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _of_folder(file: Path, *, is_wrong: bool) -> Finding:
    """Creates a temporary file there, because permissions do not show a read-only file system."""
    folder = next(parent for parent in file.parents if _exists(parent))
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        text = f"{file} cannot be created: {error.strerror or 'unknown reason'} in {folder}."
        advice = "Set path under [store] to another file."
        return Finding(subject="store", text=text, is_wrong=is_wrong, is_note=True, advice=advice)
    return Finding(subject="store", text=f"{file} is created at the first start.")


def _of_search(search: SearchConfig) -> Finding:
    if found := shutil.which(search.command):
        return Finding(subject="search", text=f"the program is {found}.")
    text = f"found no program {quote(search.command)} that can be run."
    return Finding(subject="search", text=text, is_wrong=True, advice="Correct command under [search], or install it.")


async def _of_address(server: ServerConfig) -> Finding:
    address = address_of(server)
    reason = bind_error(server, server.port)
    if reason is None:
        return Finding(subject="address", text=f"{address} is free.")
    if reason.errno == errno.EADDRINUSE:
        if await _is_toolwire(server):
            return Finding(subject="address", text=f"toolwire is running at {address}.")
        advice = "Stop what listens there, or choose another with --port."
        user = listener_at(server.port) or "another program"
        return Finding(subject="address", text=f"{address} is in use by {user}.", is_wrong=True, advice=advice)
    text = f"{server.host} port {server.port} cannot be used: {reason.strerror or 'unknown reason'}."
    return Finding(subject="address", text=text, is_wrong=True, advice="Choose others with --host and --port.")


async def _is_toolwire(server: ServerConfig) -> bool:
    """Recognised by the demo model, which is always listed."""
    key = server.keys[0].reveal() if server.keys else ""
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            ids = await probe(f"{address_of(server)}/v1/models", key)
    except (OSError, TimeoutError):
        return False
    return any(model.startswith("demo/") for model in ids or ())
