"""The environment of the VS Code tests: `toolwire serve`, and a real VS Code whose windows are pages of a headless browser.

Both have a separate home and a clean environment. The windows find the gateway by TOOLWIRE_URL and its token in the file
that it writes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.free_port import free_port
from tests.programs.codex_backend.clients import KEY
from tests.programs.codex_backend.processes import eventually
from tests.programs.installed import ROOT
from tests.programs.vscode.browser import Browser, browsing
from tests.programs.vscode.installed import code_server, search_path

PROVIDER = Path(__file__).with_name("provider")
PLAYER = "player"  # the models of the provider
COUNTER = "counter"  # always tells its usage
PRIVATE = "private"  # may be used only when the user has said so
DIALECTS = ("chat", "responses", "messages")
STORED = "stored"  # Responses that lean on those the gateway has stored
STATUS = '.statusbar-item[id*="toolwire"] a'
NOTICE = ".notifications-toasts .notification-toast"
FIRST = "first"  # the window that is always there
_SETTINGS = {
    "telemetry.telemetryLevel": "off",
    "workbench.startupEditor": "none",
    "workbench.colorTheme": "Default Light Modern",
    "workbench.enableExperiments": False,
    "workbench.reduceMotion": "on",  # nobody looks
    "editor.cursorBlinking": "solid",
    "security.workspace.trust.enabled": False,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
}
_ANONYMOUS = "chat.allowAnonymousAccess"  # with it Copilot's own extension works without an account
_PATIENCE = 120.0
_TAIL = 6000
_NOISE = (" → ", "    at ", "[IPC Library")  # it looks for what it does not need
_NOWHERE = "http://127.0.0.1:9"


class Stage:
    """The gateway may be ended and started again; windows may be opened and closed."""

    browser: Browser
    size = (1200, 800)

    def __init__(self, folder: Path, *, is_anonymous: bool = True) -> None:
        """is_anonymous: the chat is used without an account, as its settings say."""
        self.folder = folder
        self.port, self.editor_port = free_port(), free_port()
        self.home, self.project, self.user = folder / "home", folder / "project", folder / "data" / "User"
        self.program = folder / "code-server"  # as a user has it on the PATH
        for place in (self.home, self.project, self.user):
            place.mkdir(parents=True)
        (self.project / "a-file-of-the-project.txt").write_text("hello\n", encoding="utf-8")
        self.settings = _SETTINGS | ({_ANONYMOUS: True} if is_anonymous else {})
        self.write_settings()
        (folder / "toolwire.toml").write_text(self._config(), encoding="utf-8")
        self.program.write_text(self._script(), encoding="utf-8")
        self.program.chmod(0o755)
        self.hosts: dict[str, int] = {}  # page -> the process that its extensions run in
        self._stack = ExitStack()
        self._gateway: subprocess.Popen[bytes] | None = None

    def write_settings(self, **more: object) -> None:
        """As the user edits them; windows that are open may not notice before they are reloaded."""
        self.settings |= more
        (self.user / "settings.json").write_text(json.dumps(self.settings), encoding="utf-8")

    def allow_anonymous(self) -> None:
        self.write_settings(**{_ANONYMOUS: True})

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def model(self, name: str) -> str:
        return f"vscode/{name}"

    def start(self) -> None:
        shutil.copytree(PROVIDER, self.folder / "extensions" / "toolwire-tests.played-0.0.1")
        self.toolwire("vscode", "install", "--program", str(self.program))
        self._connect()
        self.start_gateway()
        editor = [str(self.program), "--bind-addr", f"127.0.0.1:{self.editor_port}", str(self.project)]
        self._stack.enter_context(self._running("editor", editor, self.editor_port))
        self.browser = self._stack.enter_context(browsing(self.folder / "browser"))
        self.open(FIRST)
        self.has_models()

    def close(self) -> None:
        self._stack.close()
        self.end_gateway(signal.SIGTERM)

    def open(self, page: str) -> None:
        """A window, and the extension in it has found the gateway."""
        self.browser.open(page, f"http://127.0.0.1:{self.editor_port}/?folder={self.project}", *self.size)
        self.browser.wait(page, f'{STATUS}[aria-label*="connected to toolwire"]', _PATIENCE)
        log = (self.folder / "editor.log").read_text(encoding="utf-8")
        self.hosts[page] = int(re.findall(r"<(\d+)> Launched Extension Host Process", log)[-1])

    def shut(self, page: str) -> None:
        del self.hosts[page]
        self.browser.close(page)

    def focus(self, page: str) -> None:
        """The user turns to this window. The browser has every page believe that it has the focus, so each is told, this one too:
        VS Code says nothing of a focus that it thinks it has."""
        for other in self.hosts:
            self.browser.evaluate(other, _focusing("false", "blur"))
        time.sleep(0.3)
        self.browser.evaluate(page, _focusing("true", "focus"))

    def windows(self) -> int:
        """How many the gateway says are connected."""
        log = (self.folder / "gateway.log").read_text(encoding="utf-8").rpartition("\ntoolwire ")[2]
        found = re.findall(r'a VS Code window \("(\w+)"\) (connected|left)', log)
        return sum(1 if what == "connected" else -1 for _, what in found)

    def clear_notices(self, page: str = FIRST) -> None:
        """They lie over what is to be clicked."""
        while self.browser.texts(page, NOTICE):
            self.browser.hover(page, NOTICE)
            self.browser.click(page, f'{NOTICE} a[aria-label^="Clear Notification"]')

    def start_gateway(self) -> None:
        serve = [sys.executable, "-m", "toolwire", "serve", "--config", str(self.folder / "toolwire.toml")]
        with (self.folder / "gateway.log").open("ab") as log:
            self._gateway = subprocess.Popen(
                serve, env=self.environment(), cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
            )
        if not eventually(lambda: self._answers(), _PATIENCE):
            raise RuntimeError(f"the gateway did not start\n{self.tail()}")

    def end_gateway(self, sign: signal.Signals) -> None:
        if self._gateway is not None:
            self._gateway.send_signal(sign)
            self._gateway.wait(timeout=_PATIENCE)
            self._gateway = None

    def models(self) -> list[str]:
        asked = urllib.request.Request(f"{self.address}/v1/models", headers={"authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return [line["id"] for line in json.load(answer)["data"]]

    def has_models(self) -> None:
        """Waits until the gateway may ask the provider's models."""
        wanted = {self.model(PLAYER), self.model(PRIVATE)}
        if not eventually(lambda: wanted <= set(self.models()), _PATIENCE):
            raise RuntimeError(f"VS Code lends {self.models()}\n{self.tail()}")

    def seen(self, tag: str) -> list[dict[str, Any]]:
        """What the provider was asked with this tag, oldest first, each in the state it is in."""
        journal = self.folder / "journal"
        found: dict[str, dict[str, Any]] = {}
        for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else []:
            record = json.loads(line)
            if record["tag"] == tag:
                found[record["number"]] = found.get(record["number"], {}) | record
        return list(found.values())

    def becomes(self, tag: str, state: str) -> bool:
        """Whether the last request with this tag comes to that state."""
        return eventually(lambda: [record["state"] for record in self.seen(tag)][-1:] == [state], 60)

    def status(self, page: str = FIRST) -> str:
        """What the item in the status bar says."""
        return " ".join(self.browser.labels(page, STATUS))

    def toolwire(self, *arguments: str) -> str:
        return self._run(sys.executable, "-m", "toolwire", *arguments)

    def tail(self) -> str:
        logs = [self.folder / f"{name}.log" for name in ("gateway", "editor")]
        logs.append(self.folder / "browser" / "browser.log")
        return "\n".join(f"--- {log.name}\n{_end_of(log)}" for log in logs if log.exists())

    def environment(self) -> dict[str, str]:
        places = {f"XDG_{name}_HOME": str(self.folder / name.lower()) for name in ("STATE", "DATA", "CONFIG", "CACHE")}
        own = {"HOME": str(self.home), "TMPDIR": str(self.folder), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        # Nothing leaves the machine: what is not on loopback ends at a closed port.
        alone = {"HTTPS_PROXY": _NOWHERE, "HTTP_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
        alone["EXTENSIONS_GALLERY"] = json.dumps({"serviceUrl": _NOWHERE})
        played = {"TOOLWIRE_URL": self.address, "PLAYED_JOURNAL": str(self.folder / "journal")}
        return {"PATH": search_path(), "LANG": "C.UTF-8"} | own | places | alone | played

    def _connect(self) -> None:
        """The gateway as custom endpoints of Copilot, as `toolwire connect` writes one, in all dialects beside each other."""
        groups = []
        for name in (*DIALECTS, STORED):
            file, dialect = self.folder / f"{name}.json", "responses" if name == STORED else name
            model = ("--model", f"scripted/by-{name}", "--config", str(self.folder / "toolwire.toml"))
            writing = ("--file", str(file), "--write", "--write-key")
            self.toolwire("connect", "vscode", "--dialect", dialect, *model, *writing)
            (group,) = json.loads(file.read_text(encoding="utf-8"))
            if name == STORED:
                del group["models"][0]["zeroDataRetentionEnabled"]
            groups.append(group | {"name": f"{group['name']} {name}"})
        (self.user / "chatLanguageModels.json").write_text(json.dumps(groups), encoding="utf-8")

    def _config(self) -> str:
        server = f'[server]\nport = {self.port}\nkeys = ["{KEY}"]\ndefault = "vscode"\nshutdown_seconds = 3\n'
        windows = '[backends.vscode]\nkind = "vscode"\nguard = "retry"\n'
        return f'{server}{windows}[backends.scripted]\nkind = "scripted"\nguard = "off"\n'

    def _script(self) -> str:
        own = f"--user-data-dir '{self.folder / 'data'}' --extensions-dir '{self.folder / 'extensions'}'"
        quiet = "--auth none --disable-telemetry --disable-update-check --disable-workspace-trust"
        command = " ".join(f"'{word}'" for word in code_server())
        return f'#!/bin/sh\ncase "$1" in --bind-addr) more="{quiet}" ;; esac\nexec {command} {own} $more "$@"\n'

    def _run(self, *command: str) -> str:
        done = subprocess.run(
            command, env=self.environment(), cwd=self.folder, capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode:
            raise RuntimeError(f"{command} ended with {done.returncode}: {done.stdout[-_TAIL:]}{done.stderr[-_TAIL:]}")
        return done.stdout

    def _answers(self) -> bool:
        assert self._gateway is not None
        if self._gateway.poll() is not None:
            raise RuntimeError(f"the gateway has ended\n{self.tail()}")
        try:
            return bool(self.models()) or True
        except OSError:
            return False

    @contextmanager
    def _running(self, name: str, command: list[str], port: int) -> Iterator[None]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=self.environment(),
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            if not eventually(lambda: process.poll() is not None or _listens(port), _PATIENCE) or process.poll():
                raise RuntimeError(f"{name} did not start\n{self.tail()}")
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def running(folder: Path, *, is_anonymous: bool = True) -> Iterator[Stage]:
    stage = Stage(folder, is_anonymous=is_anonymous)
    try:
        stage.start()
        yield stage
    finally:
        stage.close()


def _focusing(has: str, event: str) -> str:
    return f"document.hasFocus = () => {has}; window.dispatchEvent(new Event('{event}'));"


def _listens(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
    except OSError:
        return False
    return True


def _end_of(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(line for line in lines if not line.startswith(_NOISE))[-_TAIL:]
