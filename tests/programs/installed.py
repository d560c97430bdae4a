"""Paths of the installed programs, or the reason why one is missing. `make test` installs them from package-lock.json and requirements.txt."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TOOLWIRE_PROGRAMS") or ROOT / ".cache" / "programs")
NODE_MODULES = FOLDER / "npm" / "node_modules"
PYTHON = FOLDER / "python" / "bin" / "python"


def node_program(name: str) -> Path:
    """The npm program of that name; skips the test if it is not installed."""
    _needed(NODE_MODULES / ".bin" / "node", "node 22")
    return _needed(NODE_MODULES / ".bin" / name, name)


def node_library(name: str) -> Path:
    _needed(NODE_MODULES / ".bin" / "node", "node 22")
    return _needed(NODE_MODULES / name, name)


def python_library(name: str) -> Path:
    _needed(PYTHON, "the Python for the programs")
    return _needed(_site_packages() / name, name)


def search_path() -> str:
    """node 22 takes precedence over the machine's own."""
    return f"{NODE_MODULES / '.bin'}:/usr/local/bin:/usr/bin:/bin"


@cache
def _site_packages() -> Path:
    found = sorted((FOLDER / "python" / "lib").glob("python3.*/site-packages"))
    return found[-1] if found else FOLDER / "python" / "lib"


def _needed(path: Path, what: str) -> Path:
    if not path.exists():
        reason = f"{what} is not installed: there is no {path}; `make programs` puts it there"
        print(f"skipped: {reason}")
        pytest.skip(reason)
    return path
