"""A separate test session in a network namespace with only loopback, so that no program in it can reach anything else.

If the machine does not allow such a namespace, the session runs without it and says so.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.programs.installed import FOLDER, ROOT

HERE = Path(__file__).parent
NOTE = "TOOLWIRE_TESTS_ALONE"  # set inside, to what is so
_UNSHARE = ("unshare", "--map-root-user", "--net")
_INSIDE = 'ip link set lo up && exec "$@"'
_COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


class Outcome(NamedTuple):
    code: int
    counts: dict[str, int]
    output: str


@cache
def is_possible() -> bool:
    if not all(shutil.which(name) for name in ("unshare", "ip")):
        return False
    tried = subprocess.run([*_UNSHARE, "sh", "-c", _INSIDE, "sh", "true"], capture_output=True)
    return tried.returncode == 0


def run(files: Sequence[str], version: str, folder: Path, *, timeout: float) -> Outcome:
    """The tests in the proof_* files, for one version of Codex."""
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", "--durations=5"]
    command = [*pytest, f"--basetemp={folder}", *(str(HERE / file) for file in files)]
    if is_possible():
        command = [*_UNSHARE, "sh", "-c", _INSIDE, "sh", *command]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=_environment(version),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        told, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        told, _ = process.communicate()
        told += f"\nit did not end in {timeout} s".encode()
    output = told.decode("utf-8", "replace")
    counts = {what: int(number) for number, what in _COUNT.findall(output.rstrip().rpartition("\n")[2])}
    return Outcome(process.returncode, counts, output)


def _environment(version: str) -> dict[str, str]:
    """A clean environment."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR", "TOOLWIRE_THOROUGH") if name in os.environ}
    own = {"TOOLWIRE_PROGRAMS": str(FOLDER), "TOOLWIRE_CODEX": version, "PYTHONPATH": str(ROOT / "src")}
    return (
        kept | own | {NOTE: "loopback only" if is_possible() else "no network of its own: unshare is not allowed here"}
    )
