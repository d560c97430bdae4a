"""A gateway whose process can run out of file descriptors: `python -m tests.server.exhausted`.

It prints its port. Each line on stdin takes all descriptors that are left, or gives them back.
"""

from __future__ import annotations

import os
import resource
import sys

from tests.server.harness import gateway, server_config
from toolwire.config.file import Config, with_backends

FILES = 256


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    with gateway(with_backends(Config(server=server_config()), ())) as running:
        print(running.port, flush=True)
        taken: list[int] = []
        for _ in sys.stdin:
            if taken:
                while taken:
                    os.close(taken.pop())
            else:
                take_all(taken)
            print("done", flush=True)


def take_all(taken: list[int]) -> None:
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass


if __name__ == "__main__":
    main()
