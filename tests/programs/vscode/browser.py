"""A headless browser, controlled by driver.mjs; its pages have names."""

from __future__ import annotations

import json
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.programs.vscode.installed import browser as program
from tests.programs.vscode.installed import node, search_path, steering

DRIVER = Path(__file__).with_name("driver.mjs")
SECONDS = 120.0  # the machine may be busy with other things


class Browser:
    """One command at a time."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        self._commands = process.stdin
        self._answers: queue.Queue[str] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()

    def open(self, page: str, url: str, width: int = 1200, height: int = 800) -> None:
        self._do("open", page=page, url=url, width=width, height=height)

    def close(self, page: str) -> None:
        """Closes its window and the extensions that run for it."""
        self._do("close", page=page)

    def front(self, page: str) -> None:
        self._do("front", page=page)

    def evaluate(self, page: str, script: str) -> Any:
        return self._do("evaluate", page=page, script=script)

    def click(self, page: str, selector: str, seconds: float = 60) -> None:
        self._do("click", page=page, selector=selector, seconds=seconds)

    def hover(self, page: str, selector: str) -> None:
        self._do("hover", page=page, selector=selector)

    def wait(self, page: str, selector: str, seconds: float = 60) -> None:
        self._do("wait", page=page, selector=selector, seconds=seconds)

    def wait_gone(self, page: str, selector: str, seconds: float = 60) -> None:
        self._do("gone", page=page, selector=selector, seconds=seconds)

    def write(self, page: str, text: str) -> None:
        self._do("write", page=page, text=text)

    def press(self, page: str, key: str) -> None:
        self._do("press", page=page, key=key)

    def texts(self, page: str, selector: str) -> list[str]:
        found: list[str] = self._do("texts", page=page, selector=selector)
        return found

    def labels(self, page: str, selector: str) -> list[str]:
        """The accessibility labels."""
        found: list[str] = self._do("labels", page=page, selector=selector)
        return found

    def shot(self, page: str, path: Path, clip: dict[str, float] | None = None) -> None:
        self._do("shot", page=page, path=str(path), clip=clip)

    def _do(self, what: str, **rest: Any) -> Any:
        self._number += 1
        self._commands.write(json.dumps({"id": self._number, "what": what, **rest}) + "\n")
        self._commands.flush()
        answer = json.loads(self._answers.get(timeout=SECONDS + rest.get("seconds", 0)) or "{}")
        if answer.get("id") != self._number or "error" in answer:
            raise RuntimeError(f"the browser could not {what} {rest}: {answer.get('error', 'it is gone')}")
        return answer["value"]

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._answers.put(line)
        self._answers.put("")


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    folder.mkdir(parents=True, exist_ok=True)
    # A socket path has at most 107 characters, and the browser creates one in its temporary folder.
    with tempfile.TemporaryDirectory(prefix="tw") as short, (folder / "browser.log").open("ab") as said:
        environment = {"PATH": search_path(), "HOME": str(folder), "TMPDIR": short, "LANG": "C.UTF-8"}
        process = subprocess.Popen(
            [str(node()), str(DRIVER), str(program()), str(steering())],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            yield Browser(process)
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()  # the driver closes its browser then
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait(timeout=20)
    process.stdout.close()
