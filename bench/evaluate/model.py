"""SmolLM2-135M on llama.cpp servers of this machine, as `make model` installs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "SmolLM2-135M-Instruct (135 million parameters, Q4_1), llama.cpp"
_FOLDER = Path(os.environ.get("TOOLWIRE_PROGRAMS") or ROOT / ".cache" / "programs") / "model"
_TICKS = os.sysconf("SC_CLK_TCK")


class LocalModel:
    """So many servers, each with one thread."""

    def __init__(self, servers: int) -> None:
        python = _FOLDER / "bin" / "python"
        if not python.exists():
            sys.exit(
                f"the model is not installed: there is no {python}. `make model` installs it; --url measures another one."
            )
        command = [str(python), str(ROOT / "tests" / "model" / "server.py")]
        pipe = subprocess.PIPE
        self._processes = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
            for _ in range(servers)
        ]
        self.urls = [f"{self._address(process)}/v1" for process in self._processes]

    @property
    def cpu_seconds(self) -> float:
        stats = [
            Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split() for process in self._processes
        ]
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / _TICKS

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _address(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        address = next((line.strip() for line in process.stdout if line.startswith("http")), "")
        if not address:
            sys.exit("the llama.cpp server did not start.")
        return address
