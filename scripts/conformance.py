"""Write docs/conformance.md: the same check for the demo model, the gateway on every path, a llama.cpp server, LiteLLM and other endpoints.

`python scripts/conformance.py [--litellm PROGRAM] [NAME=URL ...]` checks our own endpoints, the llama.cpp server of `make model` if it is
installed, LiteLLM's proxy in front of the demo model, and each named endpoint with Chat Completions. It takes a few minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from toolwire import __version__
from toolwire.backends.http.kinds import DIALECT_OF
from toolwire.backends.http.transport import Transport
from toolwire.check.results import AREAS, DialectReport
from toolwire.check.runner import CheckOptions, check_dialect
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.testing.background import BackgroundGateway

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
MODEL = "demo/echo-tools"
_START_SECONDS = 180
_KINDS = {dialect: kind for kind, dialect in DIALECT_OF.items()}
_HEAD = """# Conformance

The results of [`toolwire check`](check.md) for our own endpoints and for others, all from one run. The page is generated:

```sh
{commands}
```

toolwire {version}, {date}. A verdict is `pass`, `unusual` (no rule is broken), `unsupported`, `untested` (the model did not do what the probe needs) or `fail`.
Behind the gateway and LiteLLM is the demo model, except where llama.cpp is named. Schemas: how many of the forced calls are valid. F1: whether the model calls a tool where it
should, against the labels of the questions. A small model fails schemas and questions; that is no fault of its server.

| endpoint | dialect | wire | schemas | behaviour | faults |
|---|---|---|---|---|---|
"""


def own_rows() -> list[str]:
    """The demo model, and the gateway between each dialect of a client and each of a back end. The same for every run."""
    with ExitStack() as stack:
        demo = stack.enter_context(_gateway(BackendConfig(name="demo", kind="demo")))
        rows = [_row("demo model", _check(demo, dialect, MODEL)) for dialect in _KINDS]
        for behind in _KINDS:
            upstream = BackendConfig(
                name="upstream", kind=_KINDS[behind], base_url=_base_url(demo, behind), models=(MODEL,)
            )
            address = stack.enter_context(_gateway(upstream))
            for dialect in _KINDS:
                report = _check(address, dialect, f"upstream/{MODEL}")
                rows.append(_row(f"gateway, back end with {behind}", report))
    return rows


def other_rows(endpoints: dict[str, str]) -> list[str]:
    """name and URL of servers with Chat Completions, each alone and behind the gateway."""
    rows = []
    for name, url in endpoints.items():
        config = BackendConfig(name="other", kind="openai-chat", base_url=url, models=("default",))
        rows.append(_row(name, _check(url.removesuffix("/v1"), "chat", "default")))
        with _gateway(config) as address:
            for dialect in ("chat", "responses", "messages"):
                rows.append(_row(f"{name}, behind the gateway", _check(address, dialect, "other/default")))
    return rows


def litellm_rows(program: Path) -> list[str]:
    """LiteLLM's proxy between each dialect of a client and the demo model with Chat Completions."""
    name = f"LiteLLM {_litellm_version(program)}, back end with chat"
    with _gateway(BackendConfig(name="demo", kind="demo")) as demo, litellm_server(program, demo) as address:
        return [_row(name, _check(address, dialect, "demo")) for dialect in _KINDS]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--litellm", type=Path)
    parser.add_argument("endpoints", nargs="*", metavar="NAME=URL")
    given = parser.parse_args(arguments)
    named = dict(endpoint.split("=", 1) for endpoint in given.endpoints)
    with llama_server() as address:
        found = {"llama.cpp, SmolLM2-135M": f"{address}/v1"} if address else {}
        rows = [*own_rows(), *other_rows(found | named)]
    commands = ["python scripts/conformance.py" + "".join(f' "{name}=URL"' for name in named)]
    if given.litellm:
        rows += litellm_rows(given.litellm)
        package = f"litellm[proxy]=={_litellm_version(given.litellm)}"
        commands = [
            f"python -m venv .cache/litellm && .cache/litellm/bin/pip install '{package}'",
            f"{commands[0]} --litellm .cache/litellm/bin/litellm",
        ]
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    head = _HEAD.format(commands="\n".join(commands), version=__version__, date=date)
    PAGE.write_text(head + "\n".join(rows) + "\n", "utf-8")
    return 0


def _litellm_version(program: Path) -> str:
    code = "from importlib.metadata import version; print(version('litellm'))"
    return subprocess.run(
        [program.parent / "python", "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def litellm_server(program: Path, upstream: str) -> Iterator[str]:
    """The address of a proxy whose model "demo" is that of the gateway at upstream. It cannot reach anything outside of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        settings = {"model": f"openai/{MODEL}", "api_base": f"{upstream}/v1", "api_key": "none"}
        config.write_text(json.dumps({"model_list": [{"model_name": "demo", "litellm_params": settings}]}), "utf-8")
        environment = {
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "HOME": folder,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1",
        }
        options = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
        null = subprocess.DEVNULL
        with subprocess.Popen([str(program), *options], env=environment, stdout=null, stderr=null) as process:
            try:
                address = f"http://127.0.0.1:{port}"
                _wait_for(f"{address}/health/liveliness", process)
                yield address
            finally:
                process.kill()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(_START_SECONDS):
        if process.poll() is not None:
            sys.exit(f"LiteLLM ended with {process.returncode}")
        try:
            urllib.request.urlopen(url, timeout=1).close()
            return
        except OSError:
            time.sleep(1)
    sys.exit(f"{url} did not answer in {_START_SECONDS} s")


@contextmanager
def llama_server() -> Iterator[str]:
    """The address of the server, "" if it is not installed."""
    programs = Path(os.environ.get("TOOLWIRE_PROGRAMS") or ROOT / ".cache" / "programs")
    python = programs / "model" / "bin" / "python"
    if not python.exists():
        yield ""
        return
    command = [str(python), str(ROOT / "tests" / "model" / "server.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield next((line.strip() for line in process.stdout if line.startswith("http")), "")
        finally:
            process.stdin.close()
            process.kill()


@contextmanager
def _gateway(backend: BackendConfig) -> Iterator[str]:
    with BackgroundGateway(with_backends(Config(), (backend,))) as gateway:
        yield gateway.address


def _base_url(address: str, dialect: str) -> str:
    return f"{address}/v1" if dialect in ("chat", "responses") else address


def _check(address: str, dialect: str, model: str) -> DialectReport:
    config = BackendConfig(name="checked", kind=_KINDS[dialect], base_url=_base_url(address, dialect))

    async def run() -> DialectReport:
        transport = Transport()
        try:
            return await check_dialect(config, model, transport, CheckOptions(seconds=120.0), lambda result: None)
        finally:
            await transport.close()

    return asyncio.run(run())


def _row(name: str, report: DialectReport) -> str:
    wire, schema, behaviour = (report.verdict(area) for area in AREAS)
    score = f" (F1 {report.decision.f1:.2f})" if report.decision is not None else ""
    faults = ", ".join(f"`{code}`" for code in sorted(report.faults)) or "none"
    count = f"{report.schemas.valid} of {report.schemas.total}"
    return f"| {name} | {report.dialect} | {wire} | {schema} ({count}) | {behaviour}{score} | {faults} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
