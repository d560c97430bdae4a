"""A new user without a Copilot account follows docs/vscode.md: the first answer in the chat, and the gateway started from VS Code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.programs.codex_backend.processes import eventually
from tests.programs.vscode.chatting import Conversing
from tests.programs.vscode.stage import FIRST, NOTICE, STATUS, Stage, running

DIALOG = ".monaco-dialog-box"


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running(tmp_path_factory.mktemp("newcomer"), is_anonymous=False) as stage:
        yield stage


def test_the_chat_without_an_account(newcomer: Stage) -> None:
    (newcomer.project / "README.md").write_text("The miller grinds 47 sacks.\n", encoding="utf-8")
    browser = newcomer.browser
    assert eventually(lambda: "allowAnonymousAccess" in " ".join(browser.texts(FIRST, NOTICE)), 60)
    browser.click(FIRST, f'{NOTICE} .monaco-button:has-text("Show me how")')
    browser.wait(FIRST, 'text="settings.json"')
    newcomer.shut(FIRST)
    newcomer.open(FIRST)  # the hint is not shown a second time
    newcomer.clear_notices()
    Conversing(browser, FIRST).say("hello")
    browser.wait(FIRST, f'{DIALOG}:has-text("Sign in to use GitHub Copilot")')
    newcomer.shut(FIRST)
    newcomer.allow_anonymous()
    newcomer.open(FIRST)
    newcomer.clear_notices()
    chat = Conversing(browser, FIRST)
    chat.wake()
    chat.clear()
    chat.choose("toolwire demo")
    assert "The miller grinds 47 sacks." in chat.ask("read the file README.md")


@pytest.fixture
def _installed(newcomer: Stage) -> Iterator[None]:
    """The program toolwire where installers put it; what it leaves running is ended."""
    program = newcomer.home / ".local" / "bin" / "toolwire"
    pids = newcomer.home / "pids"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho $$ >> {pids}\nexec {sys.executable} -m toolwire "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    yield
    for pid in pids.read_text(encoding="utf-8").split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


@pytest.mark.usefixtures("_installed")
def test_the_gateway_is_started_and_stopped_from_the_window(newcomer: Stage) -> None:
    newcomer.shut(FIRST)
    newcomer.open(FIRST)  # which looks for the program when it opens
    newcomer.clear_notices()
    newcomer.end_gateway(signal.SIGTERM)
    assert eventually(lambda: "Click to start it" in newcomer.status(), 60)
    newcomer.browser.click(FIRST, STATUS)
    assert eventually(lambda: "connected to toolwire" in newcomer.status(), 60)
    newcomer.has_models()  # and the window lends them to the new one
    newcomer.browser.press(FIRST, "F1")
    newcomer.browser.write(FIRST, "Toolwire: Stop the gateway")
    newcomer.browser.wait(FIRST, '.quick-input-list .monaco-list-row:has-text("Stop the gateway")')
    newcomer.browser.press(FIRST, "Enter")
    assert eventually(lambda: "Click to start it" in newcomer.status(), 60)
    with pytest.raises(OSError, match="refused"):
        newcomer.models()
