"""`toolwire vscode`: installs the extension of this package in VS Code, shows its status, and removes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import as_file, files
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter
from msgspec import Struct

from .. import __version__
from ..catalog.discovery import VSCODE_PROGRAMS as PROGRAMS
from ..config.file import Config, load
from ..errors import ConfigError, quote
from .clients.client import KEY
from .clients.gateway import key_of, look, windows_at
from .models import plain
from .serve import ConfigFlag, address_of

EXTENSION = "toolwire.toolwire"
_SHIPPED = files("toolwire") / "extension" / "toolwire.vsix"
_SECONDS = 120.0
_NAME = "vscode"  # of the default back end without a file

ProgramFlag: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(
        name="--program",
        help=f"Program of VS Code, as name or path, can be repeated; by default those of {', '.join(PROGRAMS)} that are found.",
        negative="",
    ),
]

WITHOUT_ACCOUNT = (
    'To use it without an account, add "chat.allowAnonymousAccess": true to its settings.json and reload the window.'
)

vscode = App(name="vscode", help="Connect VS Code to the gateway with an extension.", help_format="plaintext")


class ProgramOutput(Struct, frozen=True, kw_only=True):
    """Output of a VS Code program. fault: an error message, "" after success."""

    text: str = ""
    fault: str = ""


@vscode.command
def install(*, program: ProgramFlag = ()) -> int:
    """Install the extension, or update it to the version of this gateway. Exits with 1 if a program fails."""
    with as_file(_SHIPPED) as path:
        answers = {
            name: _run(place, "--install-extension", str(path), "--force") for name, place in _found(program).items()
        }
    for name, answer in answers.items():
        print(plain(f"{name}: {answer.fault or f'the extension {EXTENSION} {__version__} is installed.'}", 600))
    if not all(answer.fault for answer in answers.values()):
        print("Open windows load it when they are reloaded (Developer: Reload Window).")
        print(f"VS Code's chat asks for a Copilot sign-in. {WITHOUT_ACCOUNT}")
    return 1 if any(answer.fault for answer in answers.values()) else 0


@vscode.command
def uninstall(*, program: ProgramFlag = ()) -> int:
    """Remove the extension. Exits with 1 if a program fails."""
    code = 0
    for name, place in _found(program).items():
        version, fault = _installed(place)
        if version:
            fault = _run(place, "--uninstall-extension", EXTENSION).fault
        result = fault or ("the extension is removed." if version else "the extension was not installed.")
        print(plain(f"{name}: {result}", 600))
        code = 1 if fault else code
    return code


@vscode.command
def status(*, program: ProgramFlag = (), config: ConfigFlag = None) -> int:
    """Show where the extension is installed, whether the gateway runs, and which windows are connected. Exits with 1 if something is missing."""
    lines = [*_installations(_found(program)), _gateway(load(config, os.environ))]
    for is_good, text in lines:
        print(f"{'ok     ' if is_good else 'MISSING'} {plain(text, 1200)}")
    return 0 if all(is_good for is_good, _ in lines) else 1


def _found(given: tuple[str, ...]) -> dict[str, str]:
    """The programs to use, by name. Raises ConfigError if there are none."""
    found = {name: place for name in given or PROGRAMS if (place := shutil.which(os.path.expanduser(name))) is not None}
    if missing := [name for name in given if name not in found]:
        message = f"found no program {', '.join(map(quote, missing))}; expected a name on the PATH, or a path."
        raise ConfigError(message, where="--program")
    if not found:
        raise ConfigError(
            f"found none of {', '.join(PROGRAMS)} on the PATH.",
            hint='In VS Code run "Shell Command: Install \'code\' command in PATH", or give --program, or run "Extensions: '
            f'Install from VSIX..." there and choose {_SHIPPED}.',
        )
    return found


def _run(place: str, *arguments: str) -> ProgramOutput:
    try:
        done = subprocess.run(
            [place, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return ProgramOutput(fault=f"it did not answer within {_SECONDS:g} seconds.")
    except OSError as error:
        return ProgramOutput(fault=f"it cannot be started: {error.strerror or type(error).__name__}.")
    text = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        output = (done.stderr.decode("utf-8", "replace").strip() or text.strip()).splitlines()
        return ProgramOutput(fault=f"it failed with code {done.returncode}: {output[-1] if output else 'no output'}")
    return ProgramOutput(text=text)


def _installed(place: str) -> tuple[str, str]:
    """The version of the extension, "" if it is not installed, and an error message if that is unknown."""
    answer = _run(place, "--list-extensions", "--show-versions")
    lines = (line.strip().lower().partition("@") for line in answer.text.splitlines())
    return next((version for name, _, version in lines if name == EXTENSION), ""), answer.fault


def _installations(found: dict[str, str]) -> Iterator[tuple[bool, str]]:
    for name, place in found.items():
        version, fault = _installed(place)
        if fault or not version:
            yield (
                False,
                f"{name} ({place}): {fault or 'the extension is not installed; run `toolwire vscode install`.'}",
            )
        elif version != __version__:
            yield False, f"{name} ({place}): extension {version}, gateway {__version__}; run `toolwire vscode install`."
        else:
            yield True, f"{name} ({place}): extension {version} is installed."


def _gateway(config: Config) -> tuple[bool, str]:
    address, key = address_of(config.server), key_of(config)
    found = look(address, key)
    if not found.status:
        return False, f"gateway: nothing answers at {address}; run `toolwire serve`."
    if found.status != 200:
        return False, f"gateway: it answers {found.status} at {address}; set {KEY} to one of its keys."
    names = tuple(f"{backend.name}/" for backend in config.backends if backend.kind == _NAME) or (f"{_NAME}/",)
    offered = [model for model in found.models if model.startswith(names)]
    windows = windows_at(address, key)
    if offered:
        return True, f"gateway: it runs at {address}; VS Code offers {', '.join(offered)}."
    if not windows:
        return False, (
            f"gateway: it runs at {address}, and no window is connected; open VS Code and look at toolwire in its status bar."
        )
    count = "1 window is" if windows == 1 else f"{windows} windows are"
    return True, f"gateway: it runs at {address}; {count} connected and can use its models. VS Code offers none."
