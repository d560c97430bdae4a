"""A page of another origin in a real Chromium: whatever bytes it sends, the gateway rejects its requests and executes none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.programs.vscode.installed import browser
from tests.server.answers import PATHS, question, whole
from tests.server.conftest import backends_of
from tests.server.harness import Gateway, Upstream, ask, gateway, request_bytes, server_config
from toolwire.config.file import Config, with_backends

pytestmark = pytest.mark.slow
ATTEMPTS = 30
PATIENCE = 120.0
SITE = "evil.example"

# The bodies contain `upgrade:` lines and end with a request. A server that renames those lines would read the end as another request.
PAGE = """<!doctype html><script>
const bodies = BODIES;
async function attack() {
  let sent = 0;
  for (const body of bodies) {
    const options = {method: "POST", mode: "no-cors", body};  // no-cors: no preflight asks whether it may
    try { await fetch("TARGET", options); sent += 1; } catch (fault) { sent += 1; }
  }
  await fetch("/done", {method: "POST", body: String(sent)});
}
attack();
</script>"""


class Site:
    """Serves the page and receives its report."""

    def __init__(self, page: str) -> None:
        self.report = ""
        self.done = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(page.encode())

            def do_POST(self) -> None:
                site.report = self.rfile.read(int(self.headers["content-length"])).decode()
                self._answer(b"")
                site.done.set()

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def opened(folder: Path, page: str) -> Iterator[Site]:
    """The page in a browser that resolves only this name, to this machine."""
    site = Site(page)
    command = [
        str(browser()),
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server"),
        f"--user-data-dir={folder / 'profile'}",
        f"--host-resolver-rules=MAP {SITE} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"http://{SITE}:{site.port}/",
    ]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    with (folder / "browser.txt").open("wb") as output:
        running = subprocess.Popen(command, env=environ, stdout=output, stderr=output, start_new_session=True)
    try:
        yield site
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        site.close()


def smuggling_bodies() -> list[str]:
    """Each rename made a body two bytes longer. The first reads of a body may end anywhere, so the number of lines varies."""
    smuggled = request_bytes(PATHS["chat"], question("chat", "chat/smuggled"))
    smuggled += b"\n" * (len(smuggled) % 2)
    lines = b"\r\nupgrade: x" * (len(smuggled) // 2)
    padded = [lines + b"\r\n\r\n" + b" " * (number % 3 * 2000) + smuggled for number in range(ATTEMPTS)]
    return [body.decode() for body in padded]


def metric(server: Gateway, name: str) -> float:
    lines = ask(server.port, "GET", "/metrics").body.decode().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def test_a_page_of_another_origin_smuggles_no_request(tmp_path: Path) -> None:
    upstream = Upstream()
    upstream.on("smuggled", whole("chat"))
    try:
        with gateway(with_backends(Config(server=server_config()), backends_of(upstream))) as server:
            before = metric(server, "toolwire_requests_total")
            target = f"http://127.0.0.1:{server.port}{PATHS['chat']}"
            page = PAGE.replace("BODIES", json.dumps(smuggling_bodies())).replace("TARGET", target)
            with opened(tmp_path, page) as site:
                assert site.done.wait(PATIENCE), (tmp_path / "browser.txt").read_text()[-2000:]
            assert site.report == str(ATTEMPTS)
            assert upstream.received == []
            assert metric(server, "toolwire_requests_total") - before >= ATTEMPTS
            assert metric(server, "toolwire_tool_calls_total") == 0
    finally:
        upstream.close()
