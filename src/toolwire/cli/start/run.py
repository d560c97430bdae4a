"""`toolwire run`: starts a client that uses the gateway for one session, and changes no file of the user."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from ...catalog.found import found_config
from ...config.file import Config
from ...config.secret import Secret
from ...errors import ConfigError, quote
from ..clients.client import (
    DUMMY,
    KEY,
    Client,
    ClientRun,
    ConnectTarget,
    DialectSetup,
    Setting,
    SettingsFile,
    environment_of,
    settings_of,
)
from ..clients.gateway import DEMO, look
from ..clients.settings_file import FORMATS, locate, plan, replace_file
from ..clients.table import clients, find_client
from ..connect import ConnectOptions, Gateway, choose_model, find_gateway, setup_for, tier_models
from ..models import plain
from ..serve import ConfigFlag
from .client_process import run_client
from .overlay import overlay, temporary_folder
from .own_gateway import own_gateway

_SHOWN_LINES = 3  # of the gateway's log, after the client has ended
_LIST_SECONDS = 30.0  # a back end may start a program to list its models


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    model: Annotated[str | None, Parameter(help="Model to use; by default the first that the gateway lists.")] = None
    small_model: Annotated[str | None, Parameter(help="Model for small tasks such as titles; otherwise --model.")] = (
        None
    )
    large_model: Annotated[str | None, Parameter(help="Model for hard tasks; otherwise --model.")] = None
    dialect: Annotated[str | None, Parameter(help="chat, responses or messages, for clients that support several.")] = (
        None
    )
    url: Annotated[str | None, Parameter(help="Address of a running gateway, with the key in TOOLWIRE_KEY.")] = None
    config: ConfigFlag = None
    state: Annotated[
        Path | None,
        Parameter(
            help="Folder for the client's sessions and settings, used again by the next run; otherwise temporary."
        ),
    ] = None
    log: Annotated[Path | None, Parameter(help="File for the log of the gateway that this command starts.")] = None


DEFAULTS = RunOptions()


def run(client: str | None = None, *arguments: str, options: RunOptions = DEFAULTS) -> int:
    """Start a client that uses the gateway for one session and changes no file of yours; without a client, list them."""
    if client is None:
        print("\n".join(_listing()))
        return 0
    chosen = find_client(client)
    setup = _setup(chosen)
    program = _program(chosen, setup)
    way = setup_for(chosen, options.dialect)
    small, large = tier_models(chosen, options.small_model, options.large_model)
    environ = dict(os.environ)
    with temporary_folder() as place, _gateway(options, place) as gateway:
        if gateway.fault is not None and options.model is None:
            raise gateway.fault
        target = ConnectTarget(
            address=gateway.address,
            model=choose_model(options.model, gateway.models),
            has_key=gateway.has_key,
            key=gateway.key if gateway.has_key else Secret(""),
            small=small,
            large=large,
            contexts=gateway.contexts,
        )
        _report(chosen, target)
        folder = options.state.absolute() if options.state is not None else place / "client"
        return run_client([program, *arguments], client_environment(setup, way, target, environ, folder))


def client_environment(
    setup: ClientRun, way: DialectSetup, target: ConnectTarget, environ: Mapping[str, str], place: Path
) -> dict[str, str]:
    """The environment of the client. Creates its folders in place, with its settings."""
    variables = {name: value for name, value in environ.items() if name not in setup.unset}
    variables |= overlay(setup, environ, place)
    own = environment_of({**way.environment, **setup.environment}, target, way.dialect)
    key = target.key.reveal() or DUMMY
    variables |= {name: key if value == f"${KEY}" else value for name, value in own.items()}
    if target.has_key:
        variables[KEY] = key
    files = (*(way.files if setup.settings == "file" else ()), *setup.files)
    for file in files:
        _write(file, settings_of(file, target, way.dialect), target, variables, place)
    if setup.settings not in ("file", "none"):
        variables[setup.settings] = FORMATS[way.files[0].format]("", settings_of(way.files[0], target, way.dialect))
    return variables


def _write(
    file: SettingsFile, settings: Sequence[Setting], target: ConnectTarget, variables: Mapping[str, str], place: Path
) -> None:
    change = plan(locate(file.place, None, variables), file.format, settings, target.key)
    if not change.target.is_relative_to(place.resolve()):
        raise ConfigError(f"found a file outside of {place}; it is not changed.", where=str(change.target))
    if change.is_needed:
        replace_file(change)


@contextmanager
def _gateway(options: RunOptions, place: Path) -> Iterator[Gateway]:
    """The running gateway, or one for this session."""
    wanted = ConnectOptions(
        url=options.url,
        model=options.model,
        small_model=options.small_model,
        large_model=options.large_model,
        config=options.config,
    )
    found = find_gateway(wanted, _LIST_SECONDS)
    if found.is_running:
        yield found
        return
    if options.url is not None:
        raise found.fault or ConfigError(f"no gateway answers at {found.address}.", where="--url")
    config = asyncio.run(found_config(options.config))
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if options.log is None:  # only problems, which are shown at the end
        config = replace(config, server=replace(config.server, log="warning"))
    log = options.log or place / "gateway.log"
    try:
        with own_gateway(config, place / "gateway", log) as address:
            yield _own(config, address)
    finally:
        _show_problems(log, is_kept=options.log is not None)


def _own(config: Config, address: str) -> Gateway:
    keys = config.server.keys
    key = keys[0] if keys else Secret(DUMMY)
    found = look(address, key.reveal(), _LIST_SECONDS)
    return Gateway(
        address=address,
        has_key=bool(keys),
        is_key_known=bool(keys),
        key=key,
        is_running=True,
        models=found.models,
        fault=found.fault(address),
        contexts=found.contexts,
    )


def _setup(client: Client) -> ClientRun:
    if client.run is not None:
        return client.run
    is_written = any(file.place.folder for way in client.ways for file in way.files)
    hint = (
        f"`toolwire connect {client.name} --write` changes its settings, and --undo restores them."
        if is_written
        else f"`toolwire connect {client.name}` shows what to enter or to write."
    )
    raise ConfigError(f"{client.title} cannot be configured for a single start.", where="run", hint=hint)


def _program(client: Client, setup: ClientRun) -> str:
    if found := shutil.which(setup.command):
        return found
    hint = f"Install {client.title}, or add its folder to PATH."
    raise ConfigError(f"found no program {quote(setup.command)} on PATH.", where="run", hint=hint)


def _listing() -> Iterator[str]:
    for client in clients().values():
        if client.run is not None:
            is_there = "" if shutil.which(client.run.command) else f"(found no {client.run.command} on PATH)"
            yield f"{client.name:<18}{client.title:<30}{is_there}".rstrip()
    yield ""
    yield "`toolwire run CLIENT [--model NAME] [-- ARGUMENTS]` starts one; `toolwire connect` changes the settings of these and others."


def _report(client: Client, target: ConnectTarget) -> None:
    note = "; no other model was found, and it only shows how tools work" if target.model == DEMO else ""
    line = f"toolwire: {client.title} uses {plain(target.model)} at {target.address}{note}"
    print(line, file=sys.stderr, flush=True)


def _show_problems(log: Path, *, is_kept: bool) -> None:
    """The log contains only problems, unless the user wants all of it in a file."""
    if is_kept:
        return
    try:
        lines = log.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines[-_SHOWN_LINES:]:
        print(plain(f"toolwire: {line}", 600), file=sys.stderr)
    if len(lines) > _SHOWN_LINES:
        print(f"toolwire: {len(lines)} problems in all; --log FILE keeps the log.", file=sys.stderr)
