"""A headless Chromium, controlled by the DevTools protocol over two pipes: no driver, no package, no port."""

from __future__ import annotations

import base64
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD, fcntl
from pathlib import Path
from typing import Any

from tests.programs.vscode.installed import browser as program

PATIENCE = 30.0  # the machine may be busy with other things
_FLAGS = [
    *(
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--mute-audio",
    ),
    *(
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--no-proxy-server",
        "--disable-extensions",
    ),
    *("--hide-scrollbars", "--force-color-profile=srgb", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
]
_KEYS = {
    **{
        name: (name, code)
        for name, code in (("ArrowDown", 40), ("ArrowUp", 38), ("Enter", 13), ("Escape", 27), ("Tab", 9))
    },
    **{
        name: (name, code)
        for name, code in (("Home", 36), ("End", 35), ("Delete", 46), ("ArrowRight", 39), ("ArrowLeft", 37))
    },
}


class Chromium:
    """The connection to one browser process."""

    def __init__(self, process: subprocess.Popen[bytes], commands: int, answers: int) -> None:
        self.process = process
        self._commands = commands
        self._answers = answers
        self._number = 0
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.Queue[dict[str, Any]]] = {}
        self.events: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        answer: queue.Queue[dict[str, Any]] = queue.Queue()
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting[number] = answer
            message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
            _write(self._commands, json.dumps(message).encode() + b"\0")
        found = answer.get(timeout=PATIENCE * 2)
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error'].get('message')}")
        result: dict[str, Any] = found["result"]
        return result

    def page(
        self, url: str, width: int = 1360, height: int = 860, *, dark: bool = False, downloads: Path | None = None
    ) -> Page:
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.prefer("dark" if dark else "light")
        if downloads is not None:
            self.call(
                "Browser.setDownloadBehavior", behavior="allow", browserContextId=context, downloadPath=str(downloads)
            )
        page.open(url)
        return page

    def _listen(self) -> None:
        rest = b""
        while piece := os.read(self._answers, 1 << 20):
            *whole, rest = (rest + piece).split(b"\0")
            for one in whole:
                message = json.loads(one)
                if waiting := self._waiting.pop(message.get("id", 0), None):
                    waiting.put(message)
                else:
                    self.events.append(message)


class Page:
    """One tab in a browser profile of its own."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self.browser = browser
        self.session = session
        self.target = target

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **params)

    def open(self, url: str) -> None:
        fault = self.call("Page.navigate", url=url).get("errorText")
        assert not fault, f"{url}: {fault}"
        self.until("document.readyState === 'complete'")

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)

    def resize(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, script: str) -> Any:
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(f"{script}: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def until(self, script: str, seconds: float = PATIENCE) -> Any:
        """The first true value of the expression."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.value(
                f"(() => {{ try {{ const found = {script}; return found instanceof Node || found; }} catch (fault) {{ return null; }} }})()"
            )
            if found:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not true after {seconds} s: {script}\n{self.text('body')[:3000]}\n{self.faults()}"
                )
            time.sleep(0.02)

    def has(self, selector: str, text: str = "", seconds: float = PATIENCE) -> None:
        """Waits for an element that contains the text."""
        wanted = f"[...document.querySelectorAll({json.dumps(selector)})]"
        self.until(f"{wanted}.some((one) => one.textContent.includes({json.dumps(text)}))", seconds)

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def click(self, selector: str, text: str = "") -> None:
        """The first visible element that contains the text, by the mouse."""
        place = self.middle(selector, text)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, place)

    def mouse(self, kind: str, place: tuple[float, float]) -> None:
        x, y = place
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def middle(self, selector: str, text: str = "") -> tuple[float, float]:
        """Of the first visible element that contains the text, which is scrolled into view."""
        script = (
            f"(() => {{ const one = [...document.querySelectorAll({json.dumps(selector)})]"
            f".find((one) => one.textContent.includes({json.dumps(text)}) && one.getClientRects().length);"
            "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        x, y = self.until(script)
        return x, y

    def press(self, key: str, *, control: bool = False) -> None:
        name, code = _KEYS.get(key, (key, ord(key[0].upper())))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": name, "windowsVirtualKeyCode": code, "modifiers": 2 if control else 0}
        kind = "keyDown" if text and not control else "rawKeyDown"
        self.call("Input.dispatchKeyEvent", type=kind, **common, **({"text": text} if kind == "keyDown" else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def shot(self, path: Path) -> None:
        options = {"format": "png"} if path.suffix == ".png" else {"format": "webp", "quality": 84}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def faults(self) -> list[str]:
        """Exceptions, console errors and violations of the content security policy."""
        found = []
        for event in list(self.browser.events):
            if event.get("sessionId") != self.session:
                continue
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
        return found

    def requested(self) -> list[str]:
        """The addresses of all requests of the page."""
        return [
            event["params"]["request"]["url"]
            for event in list(self.browser.events)
            if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium(folder: Path) -> Iterator[Chromium]:
    """A browser that resolves no name, with its profile in a temporary folder."""
    folder.mkdir(parents=True, exist_ok=True)
    commands_in, commands = os.pipe()
    answers, answers_out = os.pipe()
    # A socket path has at most 107 characters, and the browser creates one in its temporary folder.
    with (
        tempfile.TemporaryDirectory(prefix="tw", ignore_cleanup_errors=True) as short,
        (folder / "browser.log").open("wb") as log,
    ):
        environment = {"PATH": os.environ["PATH"], "HOME": short, "TMPDIR": short, "LANG": "C.UTF-8", "TZ": "UTC"}
        command = [
            str(program()),
            *_FLAGS,
            f"--user-data-dir={short}/profile",
            "--remote-debugging-pipe",
            "about:blank",
        ]

        def connect() -> None:
            """The browser reads commands from descriptor 3 and answers on 4. The others may have these numbers."""
            source, target = fcntl(commands_in, F_DUPFD, 10), fcntl(answers_out, F_DUPFD, 10)
            os.dup2(source, 3)
            os.dup2(target, 4)

        process = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=log,
            pass_fds=(3, 4),
            preexec_fn=connect,
            start_new_session=True,
        )
        os.close(commands_in)
        os.close(answers_out)
        try:
            yield Chromium(process, commands, answers)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(commands)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
