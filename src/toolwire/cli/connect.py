"""`toolwire connect`: shows the settings that connect a client to this gateway, writes them to its file, and checks them."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter
from msgspec import Struct
from msgspec.structs import replace

from ..config.file import Config, is_loopback, load, url_fault
from ..config.secret import Secret
from ..errors import ConfigError, quote
from .clients.client import (
    DUMMY,
    KEY,
    Client,
    ConnectTarget,
    DialectSetup,
    Format,
    SettingsFile,
    environment_of,
    fill,
    settings_of,
)
from .clients.gateway import DEMO, key_from_environment, look
from .clients.settings_file import FORMATS, FileChange, difference, locate, plan, write
from .clients.table import clients, find_client
from .clients.undo import WriteJournal, plan_undo
from .models import first_chat_model, plain
from .serve import ConfigFlag, address_of

# The name is inserted between quotes in files, shell commands and code, and must not end them.
_MODEL = re.compile(r"""[^\s"'`\\$\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]{1,200}""")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ConnectOptions:
    url: Annotated[str | None, Parameter(help="Address of the gateway; by default that of the configuration.")] = None
    model: Annotated[str | None, Parameter(help="Model to use; by default the first that the gateway lists.")] = None
    small_model: Annotated[str | None, Parameter(help="Model for small tasks such as titles; otherwise --model.")] = (
        None
    )
    large_model: Annotated[str | None, Parameter(help="Model for hard tasks; otherwise --model.")] = None
    dialect: Annotated[
        str | None, Parameter(help="chat, responses, messages or ollama, for clients that support several.")
    ] = None
    file: Annotated[
        Path | None, Parameter(help="The client's settings file or its folder, if not at the standard place.")
    ] = None
    config: ConfigFlag = None
    write: Annotated[
        bool, Parameter(help="Change the client's settings file; a backup is saved next to it.", negative="")
    ] = False
    write_key: Annotated[
        bool,
        Parameter(
            help="With --write: store the gateway's key itself, for clients that need it in their file.", negative=""
        ),
    ] = False
    undo: Annotated[
        bool,
        Parameter(help="Remove what --write added to the client's settings file, and restore the rest.", negative=""),
    ] = False
    check: Annotated[
        bool, Parameter(help="Send a question and a tool result to the gateway as the client would.", negative="")
    ] = False


DEFAULTS = ConnectOptions()


class Gateway(Struct, frozen=True, kw_only=True):
    """key is what --check sends; it is never shown, and a placeholder if it is unknown. fault: why its models are unknown.
    contexts: the known context windows, in tokens by model."""

    address: str
    has_key: bool
    is_key_known: bool
    key: Secret
    is_running: bool
    models: tuple[str, ...]
    fault: ConfigError | None
    contexts: dict[str, int]


def connect(client: str | None = None, *, options: ConnectOptions = DEFAULTS) -> int:
    """Show the settings that make a client use this gateway; without a client, list the clients."""
    if client is None:
        print("\n".join(_listing()))
        return 0
    chosen = find_client(client)
    way = setup_for(chosen, options.dialect)
    if options.undo:
        return _undo(chosen, way, options)
    small, large = tier_models(chosen, options.small_model, options.large_model)
    gateway = find_gateway(options)
    target = ConnectTarget(
        address=gateway.address,
        model=choose_model(options.model, gateway.models),
        has_key=gateway.has_key,
        small=small,
        large=large,
        contexts=gateway.contexts,
    )
    target = target.named_for(way)
    fault = gateway.fault if options.model is None else None
    if options.write_key:
        target = replace(target, key=_key_to_write(chosen, way, gateway, options))
    if options.write:
        _write(chosen, way, target, options.file, fault)
    if options.check and fault is not None and gateway.models:
        print(f"WRONG {fault.sentence()}")  # only the demo model would answer
        return 1
    if options.check:
        return _check(chosen, way, target, gateway.key)
    if not options.write:
        if fault is not None:
            print(f"toolwire: {fault.sentence()} Below, {target.model} is only a placeholder.", file=sys.stderr)
        print("\n".join(_describe(chosen, way, target, options)))
    return 0


def _key_to_write(client: Client, way: DialectSetup, gateway: Gateway, options: ConnectOptions) -> Secret:
    if not any(file.carrying for file in way.files):
        fault = f"{client.title} does not need the key in its file."
    elif not options.write:
        fault = "it requires --write; the key is never shown."
    elif not gateway.has_key:
        fault = "this gateway requires no key."
    elif not gateway.is_key_known:
        fault = f"the key is unknown; set {KEY} to it."
    else:
        return gateway.key
    raise ConfigError(fault, where="--write-key")


def _listing() -> Iterator[str]:
    for client in clients().values():
        yield f"{client.name:<18}{client.title:<42}{', '.join(client.dialects)}"
    yield ""
    yield "`toolwire connect CLIENT` shows the settings; --write changes the file of the client, --check tests them."


def setup_for(client: Client, dialect: str | None) -> DialectSetup:
    if dialect is None or dialect in client.dialects:
        return client.way(dialect or client.dialects[0])
    supported = ", ".join(client.dialects)
    raise ConfigError(f"found {quote(dialect)}; {client.title} supports {supported}.", where="--dialect")


def find_gateway(options: ConnectOptions, seconds: float = 2.0) -> Gateway:
    """The one of --url, else that of the configuration, whether it runs or not. seconds: how long it may take to list its models."""
    given = key_from_environment()
    if options.url is None:
        config = load(options.config, os.environ)
        server = config.server
        address, has_key = address_of(server), bool(server.keys)
        key, is_key_known = given or (server.keys[0] if server.keys else Secret(DUMMY)), has_key
        found = look(address, key.reveal(), seconds)
        names = (options.model, options.small_model, options.large_model)
        contexts = found.contexts or {name: size for name in names if name and (size := _context(config, name))}
    else:
        address, key, is_key_known = _address(options.url), given or Secret(DUMMY), bool(given)
        found = look(address, "", seconds)
        # Without an answer, assume a key if the gateway is reachable from other machines.
        is_remote = not is_loopback(urlsplit(address).hostname or "")
        has_key = found.status in (401, 403) if found.status else is_key_known or is_remote
        found = look(address, key.reveal(), seconds) if has_key and given else found
        contexts = found.contexts
    return Gateway(
        address=address,
        has_key=has_key,
        is_key_known=is_key_known,
        key=key,
        is_running=found.status in (200, 401, 403),
        models=found.models,
        fault=found.fault(address),
        contexts=contexts,
    )


def _context(config: Config, model: str) -> int:
    """The size of context_windows; 0 if it has none. For a gateway that does not run."""
    name, _, model = config.aliases.get(model, model).partition("/")
    sizes = {backend.name: backend.context_windows for backend in config.backends}.get(name, {})
    return next((size for pattern, size in sizes.items() if fnmatchcase(model, pattern)), 0)


def _address(url: str) -> str:
    url = url.rstrip("/").removesuffix("/v1")
    if fault := url_fault(url) or (
        "" if _MODEL.fullmatch(url) else "found a URL with quotes or other special characters"
    ):
        raise ConfigError(f'{fault}; expected one such as "http://127.0.0.1:18741".', where="--url")
    return url


def choose_model(given: str | None, listed: tuple[str, ...]) -> str:
    """The first chat model of the list if none is given; the demo model only if there is no other."""
    if given is None:
        return first_chat_model([model for model in listed if _MODEL.fullmatch(model) and model != DEMO]) or DEMO
    return _model_name(given, "--model")


def tier_models(client: Client, small: str | None, large: str | None) -> tuple[str, str]:
    """Raises ConfigError if the client has no place for them."""
    for tier, given in (("small", small), ("large", large)):
        if given is not None and not client.has_tier(tier):
            raise ConfigError(f"{client.title} has no setting for another model.", where=f"--{tier}-model")
    return (
        _model_name(small, "--small-model") if small is not None else "",
        _model_name(large, "--large-model") if large is not None else "",
    )


def _model_name(given: str, where: str) -> str:
    if not _MODEL.fullmatch(given):
        message = f"found {quote(given)}; expected a model name without spaces, quotes, backslashes and $."
        raise ConfigError(message, where=where)
    return given


def _describe(client: Client, way: DialectSetup, target: ConnectTarget, options: ConnectOptions) -> Iterator[str]:
    placeholders = target.placeholders(way.dialect)
    choices = f" (--dialect: {', '.join(client.dialects)})" if len(client.dialects) > 1 else ""
    yield f"{client.title}, in the dialect {way.dialect}{choices}, with {target.model} at {target.address}"
    for number, step in enumerate(way.steps, 1):
        yield f"{number}. {fill(step, placeholders)}"
    for settings_file in way.files if options.file or not way.steps else ():
        yield f"\nIn {plain(str(locate(settings_file.place, options.file, os.environ)), 600)}:\n"
        yield FORMATS[settings_file.format]("", settings_of(settings_file, target, way.dialect)).rstrip("\n")
    if way.environment:
        yield "\nIn its environment:\n"
        yield from _exports(environment_of(way.environment, target, way.dialect), target)
    if way.code:
        yield f"\n{fill(way.code, placeholders)}"
    last = list(_last(client, way, target, options))
    yield from ("", *last) if last else ()


def _exports(environment: dict[str, str], target: ConnectTarget) -> Iterator[str]:
    for name, value in environment.items():
        if value == f"${KEY}":
            yield f'export {name}="{value}"' if target.has_key else f"export {name}={DUMMY}"
        else:
            yield f"export {name}={shlex.quote(value)}"


def _last(client: Client, way: DialectSetup, target: ConnectTarget, options: ConnectOptions) -> Iterator[str]:
    """Remaining steps, by hand or with --write."""
    yield from _after(client, target)
    if client.proof == "read":
        yield "These settings come from the client's source; they were not tested with it."
    if way.files:
        place = way.files[0].place
        where = "" if place.folder or options.file else f" --file FOLDER_OF/{place.names[-1]}"
        command = shlex.join(("toolwire", "connect", client.name, *_repeated(options), "--write"))
        yield f"`{plain(command, 6000)}{where}` makes this change for you."


def _repeated(options: ConnectOptions) -> Iterator[str]:
    """The flags that affect what is written."""
    for name in ("url", "model", "small_model", "large_model", "dialect", "file", "config"):
        if (value := getattr(options, name)) is not None:
            yield from (f"--{name.replace('_', '-')}", str(value))


def _after(client: Client, target: ConnectTarget) -> Iterator[str]:
    """Remaining steps after the settings are written."""
    yield from _aliased(client, target)
    if target.key:
        yield "This file contains the gateway's key in plain text; do not share it or its backups."
    elif target.has_key and KEY in (client.keyed_start or KEY):
        yield f"The gateway requires a key: set {KEY} in the environment of the client."
    elif target.has_key:
        yield "The gateway requires a key, which this client stores itself; --write-key writes it to the file instead."
    if start := (target.has_key and not target.key and client.keyed_start) or client.start:
        yield f"Then start it: {start}"


def _aliased(client: Client, target: ConnectTarget) -> Iterator[str]:
    if target.alias_of:
        yield f"{client.title} uses this dialect only for models such as {target.model}. In toolwire.toml of the gateway:"
        yield f'[models]\n"{target.model}" = "{target.alias_of}"'


def _write(
    client: Client, way: DialectSetup, target: ConnectTarget, file: Path | None, fault: ConfigError | None
) -> None:
    """fault: why the model of the target is only a placeholder, which is not written."""
    if not way.files:
        means = "environment variables" if way.environment else "code"
        raise ConfigError(
            f"{client.title} is configured by {means}, so there is no file to write.",
            hint=f"Use what `toolwire connect {client.name}` shows.",
        )
    changes = [_plan(settings_file, way, target, file) for settings_file in way.files]
    if fault is not None:
        raise fault
    for change, settings_file in zip(changes, way.files, strict=True):
        _apply(change, settings_file.format)
    for line in _after(client, target):
        print(line)


def _undo(client: Client, way: DialectSetup, options: ConnectOptions) -> int:
    if options.write or options.check or options.write_key:
        raise ConfigError("found other flags; expected --undo alone.", where="--undo")
    if not way.files:
        print(f"{client.title} has no settings file; --write has changed nothing.")
    journal = WriteJournal()
    planned = [_plan_undo(journal, settings_file, way, options.file) for settings_file in way.files]
    for path, change in planned:
        if change is None:
            print(f"{plain(str(path), 600)}: nothing to undo, because --write has changed nothing there.")
        else:
            _restore(change)
            journal.forget(change.target)
    return 0


def _plan_undo(
    journal: WriteJournal, settings_file: SettingsFile, way: DialectSetup, file: Path | None
) -> tuple[Path, FileChange | None]:
    path = _path(settings_file, way, file)
    records = journal.records(Path(os.path.realpath(path)))
    return path, plan_undo(path, settings_file.format, records) if records and path.exists() else None


def _restore(change: FileChange) -> None:
    name = plain(str(change.path), 600)
    _print_difference(change, has_unknown_key=True)
    if change.after:
        backup = write(change)
        print(f"{name}: restored; the backup is {plain(str(backup), 600)}.")
        return
    try:
        change.target.unlink()
    except OSError as error:
        raise ConfigError(f"this file cannot be removed: {error.strerror}.", where=str(change.path)) from None
    print(f"{name}: removed, because --write had created it.")


def _plan(settings_file: SettingsFile, way: DialectSetup, target: ConnectTarget, file: Path | None) -> FileChange:
    path = _path(settings_file, way, file)
    return plan(path, settings_file.format, settings_of(settings_file, target, way.dialect), target.key)


def _path(settings_file: SettingsFile, way: DialectSetup, file: Path | None) -> Path:
    """With several files, --file must be their folder."""
    if file is not None and len(way.files) > 1 and not os.path.isdir(os.path.expanduser(file)):
        raise ConfigError("this client has several files; expected their folder.", where="--file")
    return locate(settings_file.place, file, os.environ)


def _apply(change: FileChange, kind: Format) -> None:
    name = plain(str(change.path), 600)
    if not change.is_needed:
        print(f"{name}: nothing to change.")
        return
    _print_difference(change)
    backup = write(change)
    try:
        WriteJournal().add(change, backup, kind)
    except ConfigError as error:  # the client has its settings all the same
        print(f"toolwire: {plain(error.sentence(), 600)}", file=sys.stderr)
    print(f"{name}: written{f'; the backup is {plain(str(backup), 600)}' if backup else ''}.")


def _print_difference(change: FileChange, *, has_unknown_key: bool = False) -> None:
    for line in difference(change, has_unknown_key=has_unknown_key):
        print(plain(line.replace("\t", "    "), 600))


def _check(client: Client, way: DialectSetup, target: ConnectTarget, key: Secret) -> int:
    from .clients.trial import attempt, path_of, shape_of

    shape = shape_of(way)
    form = "streaming" if shape.is_streaming else "whole"
    print(f"As {client.title}: POST {target.address}{path_of(shape, way.dialect)}, {form}")
    outcome = attempt(target, way.dialect, shape, key.reveal())
    print("\n".join((f"{'ok   ' if outcome.is_good else 'WRONG'} {outcome.lines[0]}", *outcome.lines[1:])))
    for line in () if outcome.is_good else _aliased(client, target):
        print(line)
    return 0 if outcome.is_good else 1
