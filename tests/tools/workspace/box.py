"""A workspace in a temporary folder, with a file outside of it that no tool may touch."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from toolwire.tools import Output
from toolwire.tools.workspace import Limits, Shell, workspace
from toolwire.types import Text

ALL = ("read", "list", "glob", "grep", "write", "edit")
CANARY = "outside-canary-4711"


class Box:
    def __init__(self, folder: Path, *, limits: Limits | None = None, shell: bool | Shell = False) -> None:
        self.root = folder / "root"
        self.outside = folder / "outside"
        self.root.mkdir(exist_ok=True)
        self.outside.mkdir(exist_ok=True)
        self.canary = self.outside / "canary.txt"
        self.canary.write_text(CANARY)
        tools = workspace(self.root, allow=ALL, shell=shell, limits=limits or Limits())
        self.tools = {runnable.tool.name: runnable for runnable in tools}

    def file(self, path: str, content: str | bytes = "") -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    async def start(self, name: str, /, **arguments: object) -> Output:
        return await self.tools[name].run(arguments)

    def use(self, name: str, /, **arguments: object) -> Output:
        return asyncio.run(self.start(name, **arguments))

    def text(self, name: str, /, **arguments: object) -> str:
        """The text of a result that must be a success."""
        output = self.use(name, **arguments)
        assert not output.is_error, output
        return text_of(output)

    def refusal(self, name: str, /, **arguments: object) -> str:
        """The text of a result that must be an error, and a sentence."""
        output = self.use(name, **arguments)
        assert output.is_error, output
        text = text_of(output)
        assert text.endswith(".")
        return text

    def is_untouched(self) -> bool:
        return [entry.name for entry in self.outside.iterdir()] == ["canary.txt"] and self.canary.read_text() == CANARY


def text_of(output: Output) -> str:
    return "".join(part.text for part in output.parts if isinstance(part, Text))


needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="only Linux names the files that a process has open"
)


def open_below(folder: Path) -> list[str]:
    """What this process has open there. Threads of other tests may open something elsewhere at any time."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in found if Path(path).is_relative_to(folder))
