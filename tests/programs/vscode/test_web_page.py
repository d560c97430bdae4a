"""A page in a real browser tries every way to reach the gateway's bridge, and knows the token. It is rejected each time."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import secrets
import socket
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from tests.free_port import free_port
from tests.programs.codex_backend.processes import eventually
from tests.programs.stage import serving
from tests.programs.vscode.browser import Browser, browsing

pytestmark = pytest.mark.slow

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of the WebSocket protocol
# Opens a socket and tells how that went. It runs in pages, frames and workers alike.
_TRY = """(url, protocols) => new Promise(resolve => {
  let opened = false;
  let socket;
  try { socket = new WebSocket(url, protocols); } catch (error) { return resolve(`not tried: ${error}`); }
  socket.onopen = () => { opened = true; socket.close(); };
  socket.onclose = event => resolve(opened ? 'opened' : `refused ${event.code}`);
})"""


class Gateway(NamedTuple):
    port: int
    token: str
    log: Path


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder, port = tmp_path_factory.mktemp("gateway"), free_port()
    (folder / "toolwire.toml").write_text(
        f'[server]\nport = {port}\n[backends.vscode]\nkind = "vscode"\n', encoding="utf-8"
    )
    command = [sys.executable, "-m", "toolwire", "serve", "--config", str(folder / "toolwire.toml")]
    with serving(command, port, folder / "gateway.log"):
        token = (folder / ".local/state/toolwire/bridge-token").read_text(encoding="ascii").strip()
        yield Gateway(port, token, folder / "gateway.log")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as browser, _site() as address:
        browser.open("site", f"{address}/")
        yield browser


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_is_refused(browser: Browser, gateway: Gateway, host: str) -> None:
    assert _tried(browser, "site", f"ws://{host}:{gateway.port}/bridge") == "refused 1006"
    assert _is_noted(gateway, browser.evaluate("site", "origin"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_the_gateway_itself_is_refused(browser: Browser, gateway: Gateway, host: str) -> None:
    browser.open("own", f"http://{host}:{gateway.port}/v1/models")
    assert _tried(browser, "own", f"ws://{host}:{gateway.port}/bridge") == "refused 1006"
    browser.close("own")
    assert _is_noted(gateway, f"http://{host}:{gateway.port}")


def test_a_page_without_an_origin_is_refused(browser: Browser, gateway: Gateway) -> None:
    """Chromium may do so itself, without asking the gateway."""
    browser.open("nowhere", "data:text/html,<title>nowhere</title>")
    assert _tried(browser, "nowhere", f"ws://127.0.0.1:{gateway.port}/bridge") == "refused 1006"
    browser.close("nowhere")


def test_one_that_knows_the_token_is_refused(browser: Browser, gateway: Gateway) -> None:
    """Wherever a page could put it: a header is what it cannot set."""
    token = quote(gateway.token)
    places = [f"127.0.0.1:{gateway.port}/bridge?token={token}", f"{token}@127.0.0.1:{gateway.port}/bridge"]
    places.append(f"x:{token}@127.0.0.1:{gateway.port}/bridge")
    assert {_tried(browser, "site", f"ws://{place}") for place in places} == {"refused 1006"}
    protocols = ["bearer", f"authorization.{gateway.token}"]
    assert _tried(browser, "site", f"ws://127.0.0.1:{gateway.port}/bridge", protocols) == "refused 1006"


@pytest.mark.parametrize("inside", ["worker", "frame"])
def test_what_a_page_starts_is_refused(browser: Browser, gateway: Gateway, inside: str) -> None:
    url = f"ws://127.0.0.1:{gateway.port}/bridge"
    assert browser.evaluate("site", _INSIDE[inside](url)) == "refused 1006"
    assert _is_noted(gateway, "null" if inside == "frame" else "http://")


def test_a_page_that_asks_without_a_socket_is_refused(browser: Browser, gateway: Gateway) -> None:
    """fetch may not ask for a WebSocket; what it may ask leads nowhere."""
    url = f"http://127.0.0.1:{gateway.port}/bridge"
    headers = {"Authorization": f"Bearer {gateway.token}", "Upgrade": "websocket", "Connection": "Upgrade"}
    for settings in ({"mode": "no-cors"}, {"headers": headers}):
        script = f"fetch({json.dumps(url)}, {json.dumps(settings)}).then(got => `${{got.status}}`, error => 'failed')"
        assert browser.evaluate("site", script) in ("0", "403")  # 0: it may not see the answer


@pytest.mark.parametrize("way", ["fetch", "form"])
def test_a_page_cannot_ask_a_model_without_saying_that_it_sends_json(
    browser: Browser, gateway: Gateway, way: str
) -> None:
    """These are the requests that a page may send anywhere without a preflight; a program may send them too."""
    model = f"demo/asked-by-{way}"
    url = f"http://127.0.0.1:{gateway.port}/v1/chat/completions"
    asked = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    browser.evaluate("site", _POSTED[way](url, asked))
    assert eventually(lambda: " 415 " in _logged(gateway, "unsupported_media_type"), 30), _logged(gateway, "")
    assert model not in _logged(gateway, "")
    request = urllib.request.Request(url, asked.encode(), {"content-type": "text/plain"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200
    assert eventually(lambda: model in _logged(gateway, " 200 ok "), 30)


def test_the_page_is_what_is_refused(browser: Browser, gateway: Gateway) -> None:
    """The same page reaches another server, and the same handshake without a page is taken."""
    with _open_door() as port:
        assert _tried(browser, "site", f"ws://127.0.0.1:{port}/bridge") == "opened"
    assert _handshake(gateway) == 101
    assert _handshake(gateway, "Origin: null") == 403
    assert _handshake(gateway, f"Origin: http://127.0.0.1:{gateway.port}") == 403


def test_the_token_is_never_printed(gateway: Gateway, browser: Browser) -> None:
    _tried(browser, "site", f"ws://127.0.0.1:{gateway.port}/bridge?token={quote(gateway.token)}")
    assert gateway.token not in gateway.log.read_text(encoding="utf-8")


def _tried(browser: Browser, page: str, url: str, protocols: list[str] | None = None) -> str:
    return str(browser.evaluate(page, f"({_TRY})({json.dumps(url)}, {json.dumps(protocols or [])})"))


def _fetched(url: str, body: str) -> str:
    return f"fetch({json.dumps(url)}, {{ method: 'POST', mode: 'no-cors', body: {json.dumps(body)} }}).then(() => 'sent', String)"


def _submitted(url: str, body: str) -> str:
    """A form whose only field makes a body of JSON."""
    return f"""new Promise(resolve => {{
      const frame = document.createElement('iframe');
      frame.name = 'sink';
      frame.onload = () => resolve('sent');
      const form = Object.assign(document.createElement('form'), {{ action: {json.dumps(url)}, method: 'POST', enctype: 'text/plain', target: 'sink' }});
      const field = Object.assign(document.createElement('input'), {{ name: {json.dumps(body[:-1] + ', "x": "')}, value: '"}}' }});
      form.append(field);
      document.body.append(frame, form);
      form.submit();
    }})"""


_POSTED = {"fetch": _fetched, "form": _submitted}


def _logged(gateway: Gateway, containing: str) -> str:
    lines = gateway.log.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if containing in line)


def _is_noted(gateway: Gateway, origin: str) -> bool:
    words = f'refused a connection to /bridge: it comes from a page of "{origin}'
    return eventually(lambda: words in gateway.log.read_text(encoding="utf-8"), 30)


def _in_worker(url: str) -> str:
    source = f"({_TRY})({json.dumps(url)}, []).then(postMessage)"
    blob = f"URL.createObjectURL(new Blob([{json.dumps(source)}]))"
    return f"new Promise(resolve => {{ new Worker({blob}).onmessage = event => resolve(event.data); }})"


def _in_frame(url: str) -> str:
    """In a sandbox, where its origin is null."""
    source = f"<script>({_TRY})({json.dumps(url)}, []).then(told => parent.postMessage(told, '*'))</script>"
    return f"""new Promise(resolve => {{
      addEventListener('message', event => resolve(event.data), {{ once: true }});
      const frame = document.createElement('iframe');
      frame.sandbox = 'allow-scripts';
      frame.srcdoc = {json.dumps(source)};
      document.body.append(frame);
    }})"""


_INSIDE = {"worker": _in_worker, "frame": _in_frame}


def _handshake(gateway: Gateway, *more: str) -> int:
    lines = [
        "GET /bridge HTTP/1.1",
        f"Host: 127.0.0.1:{gateway.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(secrets.token_bytes(16)).decode()}",
        f"Authorization: Bearer {gateway.token}",
        *more,
    ]
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        return int(connection.recv(4096).split()[1])


@contextmanager
def _site() -> Iterator[str]:
    """Somebody's page, on another port of this machine."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>a page</title><body>")

        def log_message(self, *words: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _open_door() -> Iterator[int]:
    """A WebSocket server that lets everybody in, and out again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        thread = threading.Thread(target=_let_in, args=(server,), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(timeout=60)


def _let_in(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        asked = connection.recv(8192).decode("latin-1")
        key = next(
            line.partition(":")[2].strip()
            for line in asked.splitlines()
            if line.lower().startswith("sec-websocket-key")
        )
        accepted = base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accepted}\r\n\r\n"
        connection.sendall(head.encode())
        connection.recv(4096)  # its goodbye
        connection.sendall(b"\x88\x02\x03\xe8")
