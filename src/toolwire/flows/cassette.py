"""Writes flows to a cassette: JSON lines, one flow each, which `toolwire replay` and the inspector read (docs/cassettes.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..errors import ConfigError
from .detail import flow_record
from .record import Flow
from .sealed import SealedFlow

_DERIVED = ("events",)  # computed when a flow is read


class CassetteWriter:
    """Appends to the file. Each line is written at once, so a process that is killed leaves only whole lines."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._has_failed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file: BinaryIO = os.fdopen(number, "ab", buffering=0)
        except OSError as fault:
            raise ConfigError(f"the cassette cannot be written: {fault.strerror}.", where=str(path)) from None

    def write(self, flow: SealedFlow) -> None:
        """Warns about the first flow that cannot be written."""
        try:
            self._file.write(cassette_line(flow_record(flow)))
        except OSError as fault:
            if not self._has_failed:
                self._warn(f"the cassette {self._path} cannot be written: {fault.strerror}.")
            self._has_failed = True


def cassette_line(flow: Flow) -> bytes:
    value = msgspec.to_builtins(flow)
    for name in _DERIVED:
        value.pop(name, None)
    return msgspec.json.encode(value) + b"\n"


def flows_in(data: bytes) -> tuple[list[Flow], int]:
    """The flows of a cassette, and how many lines are none."""
    flows: list[Flow] = []
    skipped = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            flows.append(msgspec.json.decode(line, type=Flow))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            skipped += 1
    return flows, skipped
