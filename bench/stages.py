"""Where a request spends its CPU time: `python bench/stages.py [SCENARIO ...]`, by default plain.c16, tools.c16 and big.c1.

It runs toolwire in this process, with the mock and the load generator of the benchmark, and notes the stage that is running after
each few milliseconds of CPU time (SIGPROF). System calls count for the stage that makes them.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType, ModuleType

from measure import load_command
from scenarios import SCENARIOS, Scenario
from targets import KEY, Children, Target, free_port, toolwire_config, wait_until_answers

HERE = Path(__file__).resolve().parent

SECONDS = 10
INTERVAL = 0.001
DEFAULT = ("plain.c16", "tools.c16", "big.c1")
# The innermost module of toolwire that matches decides; modules of wire/ count for their caller.
STAGES = (
    ("log", r"server\.logs"),
    ("metrics", r"telemetry\.prometheus"),
    ("record", r"telemetry"),
    ("server", r"server|offload|ids"),
    ("parse", r"dialects\.\w+\.(request_in|tools_in|tool_lists)"),
    ("upstream", r"backends|profiles|dialects\.\w+\.request_out"),
    ("decode reply", r"dialects|pipeline\.(answer|verbatim)|calls\.(turn|validation|arguments|written)|events"),
    ("decide", r"runtime|catalog|memory|pipeline|calls|config"),
)
ORDER = ("server", "parse", "decide", "upstream", "decode reply", "record", "metrics", "log", "event loop")


class Sampler:
    """Counts stages while it is on."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        signal.signal(signal.SIGPROF, self._sample)

    def start(self) -> None:
        self.counts.clear()
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)

    def stop(self) -> Counter[str]:
        signal.setitimer(signal.ITIMER_PROF, 0)
        return Counter(self.counts)

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if stage := stage_of(frame.f_globals.get("__name__", "")):
                self.counts[stage] += 1
                return
            frame = frame.f_back
        self.counts["event loop"] += 1


def stage_of(module: str) -> str:
    name = module.removeprefix("toolwire.")
    if name == module or name in ("server.launch", "cli.serve"):
        return ""
    return next((stage for stage, pattern in STAGES if re.match(pattern, name)), "")


def drive(folder: Path, target: Target, scenarios: list[Scenario], sampler: Sampler) -> None:
    """In a thread: one load after another, then the end of the server."""
    fault = wait_until_answers(target, Children(folder), seconds=30)
    try:
        for scenario in scenarios if not fault else ():
            command, _ = load_command(folder, target, scenario, SECONDS)
            sampler.start()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
            report(scenario.name, sampler.stop())
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def report(name: str, counts: Counter[str]) -> None:
    total = counts.total()
    shares = (f"{stage} {100 * counts[stage] / total:.0f} %" for stage in ORDER)
    print(f"{name} ({total} samples): {', '.join(shares)}", flush=True)


def load_runner() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("bench_run", str(HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("bench_run", loader) or sys.exit(2))
    loader.exec_module(module)
    return module


def main(names: list[str]) -> None:
    from toolwire.config.file import load
    from toolwire.server import run

    runner, port = load_runner(), free_port()
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in (names or DEFAULT)]
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Children(Path(name)) as children:
        folder = Path(name)
        os.environ.update({"HOME": name, "XDG_STATE_HOME": name, "XDG_CONFIG_HOME": name, "TOOLWIRE_BENCH_KEY": KEY})
        runner.build(folder)
        path = folder / "toolwire.toml"
        path.write_text(toolwire_config(port, runner.start_mock(folder, children, free_port())))
        path.chmod(0o600)
        sampler, target = Sampler(), Target("toolwire", f"http://127.0.0.1:{port}")
        sys.stderr = (folder / "log").open("w")  # the gateway's log, as a service would have it
        threading.Thread(target=drive, args=(folder, target, scenarios, sampler), daemon=True).start()
        run(load(path, dict(os.environ)))


if __name__ == "__main__":
    main(sys.argv[1:])
