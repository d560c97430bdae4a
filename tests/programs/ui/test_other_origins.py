"""A page on another port of this machine, in a browser that has logged in to the inspector: it reads, deletes and executes nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.programs.ui.chromium import Chromium
from tests.programs.ui.stage import CHAT, question, staged, whole
from tests.server.harness import ask, wait_until

pytestmark = pytest.mark.slow
KEY = "key-of-the-team"
PAGE = b"<!doctype html><title>Another page</title><body>hello</body>"

# Each attempt gives what the other page learns: nothing but "refused".
ATTEMPTS = """
(async (target) => {
  const tried = (promise) => promise.then((found) => found, () => "refused");
  const read = (path, options) => tried(fetch(target + path, {credentials: "include", ...options}).then((answer) => answer.text()));
  const loaded = (tag, path) => new Promise((done) => {
    const element = document.createElement(tag);
    element.onload = () => done("loaded");
    element.onerror = () => done("refused");
    element.src = target + path;
    document.body.append(element);
  });
  const live = new Promise((done) => {
    const source = new EventSource(target + "/ui/api/flows/live", {withCredentials: true});
    source.onopen = () => done("open");
    source.onerror = () => { source.close(); done("refused"); };
  });
  const blind = {method: "POST", mode: "no-cors", headers: {"content-type": "text/plain"}};
  await tried(fetch(target + "CHAT", {...blind, credentials: "include", body: JSON.stringify(BODY)}));
  await tried(fetch(target + "/ui/logout", {...blind, credentials: "include"}));
  return [
    await read("/ui/api/flows"), await read("/ui/api/flows", {headers: {"x-toolwire-ui": "1"}}), await read("/ui/api/session"),
    await read("/ui/api/flows", {method: "DELETE", headers: {"x-toolwire-ui": "1"}}), await live,
    await loaded("script", "/ui/app.js"), await loaded("img", "/ui/icon.svg"),
  ];
})("TARGET")
"""


@pytest.fixture
def other_site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_page_gets_nothing(browser: Chromium, tmp_path: Path, other_site: str) -> None:
    with staged(tmp_path, f'keys = ["{KEY}"]', "enabled = true") as stage:
        stage.upstream.on("m", whole("Secret answer"))
        stage.ask(CHAT, question("m", stream=False), authorization=f"Bearer {KEY}")
        page = browser.page(stage.page)
        page.has(".login")
        page.write(KEY)
        page.press("Enter")
        page.has(".row", "local/m")
        page.open(other_site)
        body = '{model: "local/m", messages: [{role: "user", content: "smuggled"}]}'
        script = ATTEMPTS.replace("TARGET", stage.url).replace("CHAT", CHAT).replace("BODY", body)
        assert page.value(script) == ["refused"] * 7
        page.value(
            f"const frame = document.createElement('iframe'); frame.src = '{stage.page}'; document.body.append(frame)"
        )
        wait_until(lambda: any("frame-ancestors" in fault for fault in page.faults()))
        assert len(stage.upstream.requests("m")) == 1
        flows = ask(stage.port, "GET", "/ui/api/flows", headers={"authorization": f"Bearer {KEY}"}).json["flows"]
        assert [flow["preview"] for flow in flows if "smuggled" in flow["preview"]] == []
        assert len(flows) >= 1
        page.open(stage.page)
        page.has(".row", "local/m")  # still logged in, and nothing is deleted
        page.close()
