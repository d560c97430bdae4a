"""Write docs/conformance.md: the same check for the demo model, the gateway on every path, a llama.cpp server and other endpoints.

`python scripts/conformance.py [NAME=URL ...]` checks our own endpoints, the llama.cpp server of `make model` if it is installed, and
each named endpoint with Chat Completions. It takes a few minutes.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import subprocess
import sys
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
_KINDS = {dialect: kind for kind, dialect in DIALECT_OF.items()}
_HEAD = """# Conformance

The results of [`toolwire check`](check.md) for our own endpoints and for others, all from one run. The page is generated:

```sh
python scripts/conformance.py{arguments}
```

toolwire {version}, {date}. A verdict is `pass`, `unusual` (no rule is broken), `unsupported`, `untested` (the model did not do what the probe needs) or `fail`.
Schemas: how many of the forced calls are valid. F1: whether the model calls a tool where it should, against the labels of the questions. A small model fails schemas and questions; that is
no fault of its server.

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


def main(arguments: list[str]) -> int:
    named = dict(argument.split("=", 1) for argument in arguments)
    with llama_server() as address:
        found = {"llama.cpp, SmolLM2-135M": f"{address}/v1"} if address else {}
        rows = [*own_rows(), *other_rows(found | named)]
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    shown = "".join(f' "{name}=URL"' for name in named)
    PAGE.write_text(_HEAD.format(arguments=shown, version=__version__, date=date) + "\n".join(rows) + "\n", "utf-8")
    return 0


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
