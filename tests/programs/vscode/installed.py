"""Paths of the real VS Code and a browser, or the reason why one is missing. `make editor` installs the first; browsers are not downloaded."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.programs.installed import FOLDER

HERE = FOLDER / "vscode"
NODE_MODULES = HERE / "node_modules"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_OWN_BROWSER = "import('playwright-core').then(({ chromium }) => console.log(chromium.executablePath()))"


def code_server() -> list[str]:
    """The command that starts VS Code; skips the test if it is not installed."""
    entry = NODE_MODULES / "code-server" / "out" / "node" / "entry.js"
    whole = HERE / "node_modules" / "code-server" / "lib" / "vscode" / "node_modules"
    return [str(node()), str(_needed(entry, whole, what="VS Code"))]


def node() -> Path:
    return _needed(NODE_MODULES / ".bin" / "node", what="node 24")


def steering() -> Path:
    """The folder that scripts find playwright-core from."""
    _needed(NODE_MODULES / "playwright-core", what="playwright-core")
    return HERE


def browser() -> Path:
    found = next((place for name in _BROWSERS if (place := shutil.which(name))), None) or _of_playwright()
    if found is None:
        _skip(f"no browser is installed: found none of {', '.join(_BROWSERS)}, and none that playwright-core installed")
    return Path(found)


def framework(name: str) -> Path:
    """The Python that has it."""
    python = FOLDER / "frameworks" / name / "bin" / "python"
    return _needed(python, python.parents[1] / ".installed", what=name, by="make frameworks")


def search_path() -> str:
    """node 24 takes precedence over the machine's own."""
    return f"{NODE_MODULES / '.bin'}:/usr/local/bin:/usr/bin:/bin"


@cache
def _of_playwright() -> str | None:
    asked = subprocess.run([node(), "-e", _OWN_BROWSER], cwd=steering(), capture_output=True, text=True, timeout=60)
    place = asked.stdout.strip()
    return place if place and Path(place).is_file() else None


def _needed(path: Path, *others: Path, what: str, by: str = "make editor") -> Path:
    if missing := [one for one in (path, *others) if not one.exists()]:
        _skip(f"{what} is not installed: there is no {missing[0]}; `{by}` puts it there")
    return path


def _skip(reason: str) -> None:
    print(f"skipped: {reason}")
    pytest.skip(reason)
