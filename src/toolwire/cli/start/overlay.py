"""Temporary folders that a client uses instead of those in the user's home.

The client gets copies of the user's own settings, never of logins: a login that is refreshed in a copy becomes invalid in the original. Folders
that other programs use too, such as XDG_CONFIG_HOME, consist of links to everything except the client's own part.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ...errors import ConfigError, quote
from ..clients.client import ClientRun, RunFolder
from ..clients.settings_file import folder_of

# The folders that toolwire itself writes to.
GATEWAY_FOLDERS = (
    RunFolder(variable="XDG_DATA_HOME", folder="$data", own="toolwire"),
    RunFolder(variable="XDG_STATE_HOME", folder="$state", own="toolwire"),
    RunFolder(variable="XDG_CACHE_HOME", folder="$cache", own="toolwire"),
)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder, removed at the end. In /var/tmp where there is one: Codex does not link its helpers inside the temporary folder."""
    parent = "/var/tmp" if os.path.isdir("/var/tmp") and os.access("/var/tmp", os.W_OK) else None
    try:
        folder = Path(tempfile.mkdtemp(prefix="toolwire-run-", dir=parent))
    except OSError as error:
        raise ConfigError(f"no temporary folder can be created: {error.strerror}.", where="run") from None
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def overlay(setup: ClientRun, environ: Mapping[str, str], place: Path) -> dict[str, str]:
    """Creates the folders of the client inside place. Returns the variables that lead the client there."""
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    variables = replace_folders(setup.folders, environ, place)
    for name, source in setup.moved.items():
        target, file = place / setup.folders[0].variable / name, _expand(source, environ)
        if file.is_file():
            _copy(file, target)
    return variables


def replace_folders(folders: Sequence[RunFolder], environ: Mapping[str, str], place: Path) -> dict[str, str]:
    """Creates a folder inside place for each of these. Returns the variables that lead to them."""
    return {folder.variable: str(_replace(folder, environ, place / folder.variable)) for folder in folders}


def _replace(folder: RunFolder, environ: Mapping[str, str], target: Path) -> Path:
    source = folder_of(folder.folder, folder.variable, environ, sys.platform)
    target.mkdir(parents=True, exist_ok=True)
    if folder.own:
        _link_others(source, target, folder.own)
        source, own = source / folder.own, target / folder.own
        own.mkdir(parents=True, exist_ok=True)
    else:
        own = target
    for pattern in folder.copied:
        for path in sorted(source.glob(pattern)):
            _copy(path, own / path.relative_to(source))
    return target


def _link_others(source: Path, target: Path, own: str) -> None:
    """Links to everything in source except what is on the way to own."""
    first, _, rest = own.partition("/")
    try:
        names = [path.name for path in source.iterdir()]
    except OSError:  # it does not exist yet
        return
    for name in names:
        if name == first or os.path.lexists(target / name):
            continue
        try:
            (target / name).symlink_to(source / name)
        except OSError as error:
            message = f"a link to {quote(str(source / name))} cannot be created: {error.strerror}."
            raise ConfigError(
                message, where="run", hint="`toolwire connect` changes the client's settings instead."
            ) from None
    if rest:
        (target / first).mkdir(exist_ok=True)
        _link_others(source / first, target / first, rest)


def _copy(source: Path, target: Path) -> None:
    """Follows links. Skips what is neither a file nor a folder, and what an earlier run has copied."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if source.is_dir():
            shutil.copytree(source, target, ignore=_special, ignore_dangling_symlinks=True)
        elif source.is_file():
            shutil.copy2(source, target)
    except OSError as error:  # shutil.Error is one, without a reason
        reason = error.strerror or "some of its files cannot be read"
        raise ConfigError(f"this cannot be copied for the client: {reason}.", where=str(source)) from None


def _special(folder: str, names: list[str]) -> list[str]:
    paths = {name: os.path.join(folder, name) for name in names}
    return [
        name
        for name, path in paths.items()
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))
    ]


def _expand(path: str, environ: Mapping[str, str]) -> Path:
    first, _, rest = path.partition("/")
    return folder_of(first, "", environ, sys.platform) / rest
