"""Where clients keep their settings on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ...errors import ConfigError
from .client import Place


def locate(place: Place, given: Path | None, environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """given is the user's own choice: the file, or the folder it is in."""
    if given is not None:
        given = given.expanduser()
        return given / place.names[-1] if given.is_dir() else given
    if not place.folder:
        raise ConfigError(
            "this client has no one place for its settings.", hint=f"Say where with --file: PATH/{place.names[-1]}."
        )
    folder = _folder(place, environ, platform)
    paths = [folder / name for name in place.names]
    return next((path for path in paths if path.exists()), paths[-1])


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
