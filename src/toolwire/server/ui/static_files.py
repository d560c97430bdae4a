"""The files of the page: only those that are in its folder, each with its type."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).resolve().parents[2] / "ui" / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(Struct, frozen=True):
    data: bytes
    kind: str
    tag: str


class StaticFiles:
    """Read again when a file changes."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, tuple[int, StaticFile]] = {}

    def find(self, path: str) -> StaticFile | None:
        """path: relative to the folder; "" is the page itself."""
        name = path or "index.html"
        found = {str(file.relative_to(self._folder).as_posix()): file for file in self._listed()}
        file = found.get(name)
        if file is None:
            return None
        changed = file.stat().st_mtime_ns
        read = self._files.get(name)
        if read is None or read[0] != changed:
            data = file.read_bytes()
            read = changed, StaticFile(data, _TYPES[file.suffix], f'"{sha256(data).hexdigest()[:20]}"')
            self._files[name] = read
        return read[1]

    def _listed(self) -> list[Path]:
        return [
            file
            for file in self._folder.rglob("*")
            if file.suffix in _TYPES and file.is_file() and not file.is_symlink()
        ]
