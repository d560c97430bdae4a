"""App-servers for the tests: the command of the fake one, and workers on it."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from toolwire.backends.codex.transport.process import start
from toolwire.backends.codex.worker import AppServerWorker

FAKE = Path(__file__).with_name("fake_app_server.py")


def fake(*options: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-E", str(FAKE), *options)


def environment() -> tuple[dict[str, str], str]:
    """A clean one, and a mark in it by which every process that has it is found."""
    mark = f"TOOLWIRE_TEST_MARK={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    return {"PATH": os.environ.get("PATH", os.defpath), name: value}, mark


async def worker(folder: Path, *options: str, environ: dict[str, str] | None = None) -> AppServerWorker:
    channel = await start(fake(*options), folder, environ or environment()[0])
    made = AppServerWorker(channel)
    await made.introduce({"clientInfo": {"name": "test", "version": "0"}}, 10)
    return made


def journal(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def methods(path: Path) -> list[str]:
    return [str(message.get("method")) for message in journal(path)]
