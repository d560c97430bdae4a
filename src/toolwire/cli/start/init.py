"""`toolwire init`: writes a commented toolwire.toml with the keys and servers of this machine, and checks it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...catalog.discovery import ACCOUNTS, LOCAL_PORTS, discover
from ...catalog.found import probe
from ...config.file import DEFAULT_PORT, FILE_NAME, BackendConfig, load, suggestion
from ...errors import ConfigError, quote
from ..clients.settings_file import FileChange, read_settings, write
from ..doctor import doctor
from ..models import plain

_KEYS = {account.name: account.key for account in ACCOUNTS}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class InitOptions:
    file: Annotated[Path, Parameter(help="File to write, or its folder.")] = Path(FILE_NAME)
    default: Annotated[
        str | None,
        Parameter(help="Back end for model names that no back end lists; by default the first that is found."),
    ] = None
    yes: Annotated[bool, Parameter(help="Ask nothing, and use the defaults.", negative="")] = False
    force: Annotated[bool, Parameter(help="Replace an existing file; a backup is saved next to it.", negative="")] = (
        False
    )


DEFAULTS = InitOptions()


def init(*, options: InitOptions = DEFAULTS) -> int:
    """Write a commented toolwire.toml with the keys and servers of this machine, and check it."""
    path = options.file.expanduser()
    path = path / FILE_NAME if path.is_dir() else path
    can_ask = not options.yes and sys.stdin.isatty()
    before = read_settings(path)
    if before is not None and not options.force and not _may_replace(path, can_ask):
        print("Nothing was written.")
        return 1
    found = asyncio.run(discover(os.environ, probe))
    print("\n".join(describe(found)))
    default = _default(found, options.default, can_ask)
    text = "\n".join(configuration(found, default)) + "\n"
    backup = write(FileChange(path=path, target=Path(os.path.realpath(path)), before=before, after=text))
    load(path, os.environ)  # what doctor would report as an error of the user
    print(f"{plain(str(path), 600)}: written{f'; the backup is {plain(str(backup), 600)}' if backup else ''}.\n")
    code = doctor(config=path)
    print("\nNext: `toolwire serve` starts the gateway, `toolwire run` a client for one session.")
    return code


def configuration(found: Sequence[BackendConfig], default: str) -> Iterator[str]:
    """The lines of the file. Secrets are only referred to."""
    yield "# Configuration of toolwire. `toolwire doctor` checks it, `toolwire serve` starts the gateway with it."
    yield "# docs/configuration.md describes every key. A line that begins with # has no effect."
    yield ""
    yield "[server]"
    yield "# Other machines can only be served with keys: set host to an address of this machine, and keys."
    yield 'host = "127.0.0.1"'
    yield f"port = {DEFAULT_PORT}"
    yield "# The keys that clients must send. env:NAME is a variable, so that this file contains no secret."
    yield '# keys = ["env:TOOLWIRE_KEY"]'
    yield "# The back end for model names that no back end lists."
    yield f"default = {json.dumps(default)}" if default else '# default = "openai"'
    for backend in found:
        yield from ("", *_backend_lines(backend))
    missing = [account for account in ACCOUNTS if account.name not in {backend.name for backend in found}]
    for account in missing:
        yield ""
        yield f"# Not used, because {account.key} is not set."
        yield f"# [backends.{account.name}]"
        yield f'# kind = "{account.kind}"'
        yield f'# base_url = "{account.base_url}"'
        yield f'# key = "env:{account.key}"'
    yield ""
    yield "# Any other server with the API of OpenAI, such as vLLM or LM Studio on another machine."
    yield "# [backends.mine]"
    yield '# kind = "openai-chat"'
    yield '# base_url = "http://192.0.2.1:8000/v1"'
    yield '# context_windows = { "*" = 32768 }  # tokens, if the server does not list them; clients get this size'
    yield '# guard = "retry"                    # lets the model correct invalid tool calls; "repair" is the default'
    yield ""
    yield "# Short names for models."
    yield "[models]"
    yield f'# "fast" = "{default or "openai"}/MODEL"'


def _backend_lines(backend: BackendConfig) -> Iterator[str]:
    if key := _KEYS.get(backend.name, ""):
        yield f"# {key} is set."
    elif backend.name in LOCAL_PORTS:
        yield f"# It answers on this machine, with {len(backend.models)} models."
    else:
        yield f"# The program {backend.name} is on PATH."
    yield f"[backends.{backend.name}]"
    yield f"kind = {json.dumps(backend.kind)}"
    if backend.base_url:
        yield f"base_url = {json.dumps(backend.base_url)}"
    if key:
        yield f'key = "env:{key}"'


def describe(found: Sequence[BackendConfig]) -> Iterator[str]:
    """What was found, for the terminal."""
    if not found:
        keys = ", ".join(account.key for account in ACCOUNTS)
        yield f"Found no key ({keys}), no program and no local server. Only the embedded demo model answers."
        yield "Set a key or start a server, and run `toolwire init --force` again."
        return
    yield "Found on this machine:"
    for backend in found:
        source = _KEYS.get(backend.name) or (
            f"{len(backend.models)} models" if backend.name in LOCAL_PORTS else "on PATH"
        )
        yield f"  {backend.name:<12}{source}"


def _may_replace(path: Path, can_ask: bool) -> bool:
    if can_ask:
        return _ask(f"{plain(str(path), 600)} exists. Replace it? A backup is saved. [y/N] ").lower() in ("y", "yes")
    raise ConfigError("this file exists.", where=str(path), hint="--force replaces it, --file names another one.")


def _default(found: Sequence[BackendConfig], given: str | None, can_ask: bool) -> str:
    names = [backend.name for backend in found]
    if given is not None:
        if given in names:
            return given
        raise ConfigError(f"found no back end {quote(given)}{suggestion(given, names)}", where="--default")
    if len(names) < 2 or not can_ask:
        return names[0] if names else ""
    choices = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1))
    while True:
        answer = _ask(f"Which one gets model names that no back end lists? {choices} [1] ") or names[0]
        if answer.isdecimal() and 0 < int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer in names:
            return answer


def _ask(question: str) -> str:
    """ "" at the end of the input."""
    try:
        return input(question).strip()
    except EOFError:
        print()
        return ""
