"""Secrets: reading them from variables and files, and a wrapper that hides them from logs and repr."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

_MAX_BYTES = 64 * 1024


class Secret:
    """reveal() returns the text. An empty secret is false. file: the file it was read from, if any."""

    __slots__ = ("_file", "_text")

    def __init__(self, text: str = "", file: Path | None = None) -> None:
        self._text = text
        self._file = file

    def reveal(self) -> str:
        return self._text

    def read_again(self) -> Secret:
        """Reads the file again; the same secret if it has no file, or the file cannot be used."""
        if self._file is None:
            return self
        try:
            text = Resolver({}, self._file.parent).resolve(f"file:{self._file}")
        except ValueError:
            return self
        return Secret(text, self._file) if text else self

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(hidden)" if self._text else "Secret()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


class Resolver:
    """Resolves "env:NAME" and "file:PATH"; any other text is the value itself.

    missing: messages about references without a value. warnings: messages about files with unsafe permissions.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder
        self.missing: list[str] = []
        self.warnings: list[str] = []

    def secret(self, reference: str) -> Secret:
        """Like resolve(), with the file for read_again(). Raises ValueError."""
        source, colon, name = reference.partition(":")
        text = self.resolve(reference)
        is_file = bool(colon) and source == "file" and bool(text)
        return Secret(text, self._path(name.strip()) if is_file else None)

    def resolve(self, reference: str) -> str:
        """Raises ValueError, without the text in it, if the secret cannot be sent in a header."""
        source, colon, name = reference.partition(":")
        if colon and source == "env":
            text = self._from_environment(name.strip())
        elif colon and source == "file":
            text = self._from_file(name.strip())
        else:
            text = reference.strip()
        if not (text.isascii() and text.isprintable()):
            raise ValueError("found a secret with line breaks or characters outside ASCII")
        return text

    def _from_environment(self, name: str) -> str:
        text = self._environ.get(name, "").strip()
        if not text:
            self.missing.append(f"{name or 'the variable after env:'} is not set")
        return text

    def _from_file(self, name: str) -> str:
        path = self._path(name)
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
                mode = path.stat().st_mode
        except (OSError, ValueError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "no such path"
            self.missing.append(f"the file {path} cannot be read ({why})")
            return ""
        # On other systems the mode bits do not say who can read a file.
        if os.name == "posix" and mode & (stat.S_IRGRP | stat.S_IROTH):
            self.warnings.append(f"The file {path} can be read by other users; run: chmod 600 {path}")
        text = data.decode("utf-8", "replace").strip() if len(data) <= _MAX_BYTES else ""
        if not text:
            self.missing.append(f"the file {path} is {'empty' if len(data) <= _MAX_BYTES else 'too long for a secret'}")
        return text

    def _path(self, name: str) -> Path:
        try:
            return self._folder / Path(name).expanduser()
        except RuntimeError:  # "~" of a user who does not exist
            return self._folder / name
