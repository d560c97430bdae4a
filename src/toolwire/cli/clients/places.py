"""Where clients keep their settings on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ...errors import ConfigError, quote
from .client import Place


def locate(place: Place, given: Path | None, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """given is the user's own choice: the file, or the folder it is in."""
    if given is not None:
        return _chosen(place, Path(os.path.expanduser(given)))
    if not place.folder:
        raise ConfigError(
            "this client has no one place for its settings.", hint=f"Say where with --file: PATH/{place.names[-1]}."
        )
    folder = _folder(place, environ, platform)
    paths = [folder / name for name in place.names]
    return next((path for path in paths if path.exists()), paths[-1])


def _chosen(place: Place, given: Path) -> Path:
    """A new file has a name as the client's own have: a folder that is not there must not become a file."""
    if os.path.isdir(given):
        return given / place.names[-1]
    if os.path.exists(given):
        return given
    if given.name not in place.names and given.suffix not in {Path(name).suffix or None for name in place.names}:
        expected = f"expected a folder that is there, or a file in one, such as {place.names[-1]}."
        raise ConfigError(f"found nothing at {quote(str(given))}; {expected}", where="--file")
    if not os.path.isdir(given.parent):
        message = f"found no folder {quote(str(given.parent))}; expected one that is there."
        raise ConfigError(message, where="--file", hint="Make it first, if this is where the client looks.")
    return given


def _folder(place: Place, environ: Mapping[str, str], platform: str) -> Path:
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    if own := environ.get(place.variable) if place.variable else None:
        return home / own.removeprefix("~/") if own.startswith("~/") else Path(own)
    first, _, rest = place.folder.partition("/")
    bases = {"~": home, "$config": _config(home, environ), "$code": _code(home, environ, platform)}
    return bases[first] / rest if rest else bases[first]


def _config(home: Path, environ: Mapping[str, str]) -> Path:
    """A relative XDG folder is to be ignored, says its specification."""
    given = Path(environ.get("XDG_CONFIG_HOME", ""))
    return given if given.is_absolute() else home / ".config"


def _code(home: Path, environ: Mapping[str, str], platform: str) -> Path:
    if platform == "darwin":
        return home / "Library/Application Support/Code/User"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData/Roaming") / "Code/User"
    return _config(home, environ) / "Code/User"
