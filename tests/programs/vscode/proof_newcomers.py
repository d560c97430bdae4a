"""Somebody without a Copilot account who follows docs/vscode.md: what the chat asks for, what helps, and the first answer of the demo model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.codex_backend.processes import eventually
from tests.programs.vscode.chatting import Conversing
from tests.programs.vscode.stage import FIRST, NOTICE, Stage, running

DIALOG = ".monaco-dialog-box"


@pytest.fixture
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
    newcomer.open(FIRST)  # where somebody has seen it, it does not come again
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
