"""The two Codex programs of these tests, or the reason why one is missing: the oldest supported one, and the newest pinned one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.installed import FOLDER, node_program

OLDEST = "0.89.0"
NEWEST = "0.166.0"
VERSIONS = (OLDEST, NEWEST)
OLDER_MODULES = FOLDER / "codex" / "node_modules"  # from package.json beside this file


def codex(version: str) -> Path:
    """The program as npm installs it, a node script; skips the test if it is not installed."""
    if version == NEWEST:
        return node_program("codex")
    node_program("node")
    return _needed(OLDER_MODULES / ".bin" / "codex", f"Codex {version}")


def plugin_langchain() -> Path:
    """The folder of LangChain in the version of the Obsidian plugin."""
    return _needed(OLDER_MODULES / "@langchain" / "openai", "@langchain/openai 1.5.6").parents[1]


def is_native(command: str) -> bool:
    """Whether a command line is the program itself, not the script that starts it."""
    return "/vendor/" in command.split("\0")[0]


def _needed(path: Path, what: str) -> Path:
    if not path.exists():
        reason = f"{what} is not installed: there is no {path}; `make programs` puts it there"
        print(f"skipped: {reason}")
        pytest.skip(reason)
    return path
