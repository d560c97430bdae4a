"""Send many mixed requests to one gateway and check that it does not grow: memory, files, threads, tasks.

python -m bench.soak                          100,000 requests, about ten minutes
python -m bench.soak --requests 10000         a shorter look
python -m bench.soak --only 400 --body-mb 5 --requests 300 --clients 2
                                              refused requests with a large body
python -m bench.soak --trace --requests 5000  also which lines hold more memory at the end than after the warm-up
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from .client import Client
from .gateway import Gateway, Sample
from .traffic import KINDS, Traffic
from .upstream import Upstream
from .verdict import faults_of, first_after_warm_up, table_line

SETTLING = 0.3  # seconds until what clients left behind has ended


def main() -> int:
    options = _read_options()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return asyncio.run(_run(options, Path(folder)))


async def _run(options: argparse.Namespace, folder: Path) -> int:
    upstream = Upstream()
    await upstream.start()
    port = await _free_port()
    config = folder / "toolwire.toml"
    config.write_text(_configuration(port, upstream.port))
    gateway = await asyncio.to_thread(Gateway, config, is_traced=options.trace)
    try:
        samples, problems = await _soak(options, gateway, port)
        grown = await asyncio.to_thread(gateway.growth)
    finally:
        await asyncio.to_thread(gateway.stop)
        await upstream.stop()
    for line in grown:
        print(line)
    faults = [f"{count} x {problem}" for problem, count in problems.most_common(20)] + faults_of(
        samples, 2.0 * options.body_mb * options.clients
    )
    print("\n".join(faults) if faults else "flat: nothing grew after the warm-up, and every answer was as expected.")
    return 1 if faults else 0


async def _soak(options: argparse.Namespace, gateway: Gateway, port: int) -> tuple[list[Sample], Counter[str]]:
    traffic = Traffic(options.seed, options.only, options.body_mb)
    problems: Counter[str] = Counter()
    samples: list[Sample] = []
    began = time.monotonic()
    print(table_line())
    for _ in range(options.samples):
        await _send(traffic, port, options.requests // options.samples, options.clients, problems)
        await asyncio.sleep(SETTLING)
        sample = await asyncio.to_thread(gateway.sample, traffic.count)
        samples.append(sample)
        print(table_line(sample, time.monotonic() - began), flush=True)
        if options.trace and len(samples) == first_after_warm_up(options.samples, options.requests):
            await asyncio.to_thread(gateway.growth)
        if problems.total() > 100:
            break
    return samples, problems


async def _send(traffic: Traffic, port: int, count: int, clients: int, problems: Counter[str]) -> None:
    last = traffic.count + count

    async def work() -> None:
        client = Client(port)
        while traffic.count < last:
            if problem := await client.do(traffic.next()):
                problems[problem] += 1
        client.close()

    await asyncio.gather(*(work() for _ in range(clients)))


def _configuration(port: int, upstream: int) -> str:
    url = f"http://127.0.0.1:{upstream}"
    return f"""
[server]
port = {port}
keys = ["env:SOAK_KEY"]
[store]
path = "state.db"
max_mb = 16
[backends.chat]
kind = "openai-chat"
base_url = "{url}/v1"
models = ["text", "tools"]
retries = 0
[backends.messages]
kind = "anthropic"
base_url = "{url}"
models = ["text", "tools"]
retries = 0
"""


async def _free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    return port


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000, help="how many (default: 100000)")
    parser.add_argument("--clients", type=int, default=16, help="how many at once (default: 16)")
    parser.add_argument("--samples", type=int, default=40, help="how often to look at the gateway (default: 40)")
    parser.add_argument("--seed", type=int, default=1, help="of the mix of requests (default: 1)")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"only some of {', '.join(KINDS)}")
    parser.add_argument("--body-mb", type=int, default=0, metavar="N", help="a picture of this size in each request")
    parser.add_argument("--trace", action="store_true", help="find the lines whose memory grew; slow")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
