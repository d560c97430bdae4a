"""A library under test: one process runs many cases, each with its own project and secret word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.programs.stage import CONTENT, KEY, Stage, Task, TwoReadsTask, calling, final_text, prompt, reading

MODEL = "a-model"


class Cases:
    """Every case is the same task with another API of the library. kind: Task, or TwoReadsTask."""

    def __init__(self, stage: Stage, folder: Path, names: Sequence[str], kind: type[Task] = Task) -> None:
        self._stage = stage
        self._tasks = {name: kind(stage, folder / name) for name in names}
        self._file = folder / "task.json"
        self._file.write_text(json.dumps(self._described()), encoding="utf-8")

    def run(self, command: Sequence[str | Path], *, timeout: float = 120) -> None:
        """Fails with the errors of all cases."""
        first = next(iter(self._tasks.values()))
        output = first.run([*command, self._file], timeout=timeout)
        told = json.loads(output.splitlines()[-1])
        faults = {name: fault for name, task in self._tasks.items() if (fault := _fault(task, told.get(name, {})))}
        if faults:
            words = "\n\n".join(f"=== {name}: {fault}" for name, fault in faults.items())
            raise AssertionError(f"{len(faults)} of {len(self._tasks)} cases failed\n{words}\n{self._stage.tail()}")

    def _described(self) -> dict[str, Any]:
        prompts = {name: _prompt(task) for name, task in self._tasks.items()}
        return {"address": self._stage.address, "key": KEY, "model": MODEL, "prompts": prompts}


def _prompt(task: Task) -> str:
    read = reading("read_file", arguments={"path": str(task.source)})
    write = calling("write_file", arguments={"path": str(task.target), "content": CONTENT})
    return task.prompt(read, write) if isinstance(task, TwoReadsTask) else prompt(read, write, final_text())


def _fault(task: Task, told: dict[str, Any]) -> str:
    if told.get("text") != task.final:
        return f"it ended with {told.get('text')!r}, expected {task.final!r}\n{told.get('error', '')}"
    written = task.target.read_text(encoding="utf-8") if task.target.exists() else None
    return "" if written == task.content else f"the file has {written!r}, expected {task.content!r}"
