"""What `toolwire check` says about each client of a broken server, compared with a run of the client.

A client that "works" completes the task at the broken server itself. One that "works with toolwire" fails there, and completes the task
with a gateway between them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.check.broken_server import broken_server
from tests.check.calibration import BROKEN
from tests.programs.direct import CLIENTS
from tests.programs.installed import ROOT, search_path
from tests.programs.stage import Stage
from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends
from toolwire.testing.background import BackgroundGateway

pytestmark = pytest.mark.slow

SERVERS = (
    "chat: indexes from one",
    "chat: calls without a name",
    "messages: blocks without an end",
    "messages: no start",
    "responses: items without an end",
    "responses: parts that are not announced",
)
# OpenCode takes longer than all others together, so it runs at some servers only.
WITHOUT_OPENCODE = ("chat: calls without a name", "responses: items without an end")
PAIRS = [
    (server, client)
    for server in SERVERS
    for client in CLIENTS[server.partition(":")[0]]
    if client != "opencode" or server not in WITHOUT_OPENCODE
]
KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
Places = tuple[str, str, dict[str, str]]  # the broken server, a gateway in front of it, the outcome for each client


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Places]]:
    """Starts and checks a broken server at its first use. The scripted model answers the clients, the demo model the check."""
    found: dict[str, Places] = {}
    backends = (BackendConfig(name="scripted", kind="scripted"), BackendConfig(name="demo", kind="demo"))
    with ExitStack() as stack:
        good = stack.enter_context(
            BackgroundGateway(with_backends(Config(server=ServerConfig(default="scripted")), backends))
        )

        def place(server: str) -> Places:
            if server not in found:
                dialect, damage, _ = BROKEN[server]
                broken = stack.enter_context(broken_server(good.address, damage))
                base = broken if dialect == "messages" else f"{broken}/v1"
                backend = BackendConfig(name="broken", kind=KINDS[dialect], base_url=base, retries=0)
                gateway = stack.enter_context(BackgroundGateway(with_backends(Config(), (backend,))))
                outcomes = check(base, dialect, tmp_path_factory.mktemp("check"))
                found[server] = broken, gateway.address, outcomes
            return found[server]

        yield place


def check(url: str, dialect: str, folder: Path) -> dict[str, str]:
    report = folder / "report.json"
    options = ["--dialect", dialect, "--model", "demo/echo-tools", "--quick", "--json", str(report)]
    environment = {"PATH": search_path(), "HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "toolwire", "check", url, *options]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stderr
    return {one["client"]: one["outcome"] for one in json.loads(report.read_text("utf-8"))["clients"]}


def is_working(client: str, dialect: str, address: str, folder: Path) -> bool:
    folder.mkdir()
    try:
        CLIENTS[dialect][client](Stage(dialect, address, folder), folder)
    except AssertionError as error:
        print(f"{client} at {address}: {str(error)[:2000]}")
        return False
    return True


@pytest.mark.parametrize(("server", "client"), PAIRS)
def test_the_verdict_about_a_client_is_true(
    places: Callable[[str], Places], tmp_path: Path, server: str, client: str
) -> None:
    broken, gateway, outcomes = places(server)
    dialect = BROKEN[server][0]
    outcome = "works" if is_working(client, dialect, broken, tmp_path / "direct") else "fails"
    if outcome == "fails" and is_working(client, dialect, gateway, tmp_path / "gateway"):
        outcome = "repaired"
    assert outcomes[client] == outcome
