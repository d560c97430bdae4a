"""The environment of the request context: operating system, shell, time zone, and the working directory of the client."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from ...types import Message, Text

_ZONES = "/zoneinfo/"
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}")
_HEAD = re.compile(r"ref: refs/heads/([^\s\0]{1,200})\s*")
_MAX_HEAD = 4096
_MAX_SEARCHED = 100_000  # characters of a message
# How agent clients state their working directory: Claude Code, OpenCode and others, and Codex.
_FOLDER = re.compile(r"(?:[Ww]orking directory:|[Cc]wd:|<cwd>)\s{0,9}(/[^\s<>\"'`]{1,1000})")


class Machine(Struct, frozen=True, kw_only=True):
    os: str
    shell: str
    time_zone: str


def this_machine(environ: Mapping[str, str] = os.environ) -> Machine:
    return Machine(
        os=f"{platform.system().lower()} {platform.release()}".strip() or "unknown",
        shell=environ.get("SHELL") or "/bin/sh",
        time_zone=_time_zone(environ),
    )


def folder_of(messages: Iterable[Message]) -> str:
    """The client's working directory, from its instructions or first messages; "" if it states none."""
    for message in messages:
        if message.role == "assistant":
            break
        for part in message.parts:
            if isinstance(part, Text) and (found := _FOLDER.search(part.text[:_MAX_SEARCHED])):
                return found[1].rstrip(".,;")
    return ""


def branches_in(workspace: Path) -> dict[str, str]:
    """The branch of the repository in a folder, by its path. Git is not run, because its configuration can start programs."""
    head = workspace / ".git" / "HEAD"
    try:
        with head.open(encoding="utf-8", errors="replace") as file:
            found = _HEAD.fullmatch(file.read(_MAX_HEAD))
    except OSError:
        return {}
    return {str(workspace): found[1] if found else ""}


def _time_zone(environ: Mapping[str, str]) -> str:
    """The name in the time zone database, from TZ or the system; UTC if neither has it."""
    named = environ.get("TZ", "").removeprefix(":")
    if not named:
        try:
            named = os.path.realpath("/etc/localtime").partition(_ZONES)[2]
            named = named or Path("/etc/timezone").read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            named = ""
    named = named.rpartition(_ZONES)[2] if _ZONES in named else named
    return named if _ZONE.fullmatch(named) else "UTC"
