"""The gateway of the soak: a process of its own that reports what it holds.

python -m bench.soak.gateway CONFIG        serves, and answers each line on its input with a line of JSON
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .traffic import KEY

_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What the process holds while no request is under way. rss is in MB; objects are those the collector knows."""

    requests: int
    rss: float
    fds: int
    threads: int
    tasks: int
    objects: int


class Gateway:
    """The process, seen from outside."""

    def __init__(self, config: Path, *, is_traced: bool = False) -> None:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(config.parent),
            "SOAK_KEY": KEY,
            "SOAK_TRACE": "1" if is_traced else "",
        }
        environ |= {name: value for name, value in os.environ.items() if name in ("PYTHONPATH", "MALLOC_ARENA_MAX")}
        command = [sys.executable, "-m", "bench.soak.gateway", str(config)]
        pipe = subprocess.PIPE
        with (config.parent / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, env=environ)
        if self._ask("start") is None:
            raise RuntimeError((config.parent / "log.txt").read_text()[-2000:])

    def sample(self, requests: int) -> Sample:
        inside = self._ask("sample")
        if inside is None:
            raise RuntimeError("the gateway has ended")
        folder = Path(f"/proc/{self._process.pid}")
        pages = int((folder / "statm").read_text().split()[1])
        return Sample(
            requests=requests,
            rss=pages * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE,
            fds=len(list((folder / "fd").iterdir())),
            threads=len(list((folder / "task").iterdir())),
            tasks=inside["tasks"],
            objects=inside["objects"],
        )

    def growth(self) -> list[str]:
        """Which lines hold more memory than at the first call, when it is traced."""
        return list(self._ask("growth") or [])

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _ask(self, word: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(word.encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        return json.loads(line) if line else None


class _Reporter:
    """Inside the process."""

    def __init__(self) -> None:
        self._first: tracemalloc.Snapshot | None = None

    def answer(self, word: str) -> Any:
        if word == "growth":
            return self._growth()
        return {"tasks": len(asyncio.all_tasks()), "objects": len(gc.get_objects())}

    def _growth(self) -> list[str]:
        if not tracemalloc.is_tracing():
            return []
        gc.collect()
        now = tracemalloc.take_snapshot()
        first, self._first = self._first, self._first or now
        return [] if first is None else [str(line) for line in now.compare_to(first, "lineno")[:25]]


def main(config: Path) -> None:
    from toolwire.config.file import load
    from toolwire.server import App
    from toolwire.server.launch import Server, options

    if os.environ.get("SOAK_TRACE"):
        tracemalloc.start(8)
    loaded = load(config, os.environ)
    reporter = _Reporter()

    class Reporting(Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            loop = asyncio.get_running_loop()
            threading.Thread(target=listen, args=(loop,), daemon=True).start()

    def listen(loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(report, line.strip())

    def report(word: str) -> None:
        print(json.dumps(reporter.answer(word)), flush=True)

    Reporting(options(loaded, App(loaded))).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
