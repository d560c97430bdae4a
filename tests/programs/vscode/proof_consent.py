"""A model that needs the user's consent: refused, not requested again automatically, and allowed in the end."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests.programs.codex_backend.clients import Bare, Chat
from tests.programs.codex_backend.processes import eventually
from tests.programs.codex_backend.stage import fresh_tag
from tests.programs.vscode.stage import FIRST, PRIVATE, STATUS, Stage

DIALOG = ".monaco-dialog-box"


def test_consent(editor: Stage) -> None:
    """One story, as VS Code remembers what was said."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_ask_plainly, editor, fresh_tag())
        words = _answered(editor, "Cancel")
        refused = waiting.result()
    assert "wants to access the language models provided by" in words
    assert "toolwire passes on a request" in words
    _check_refused(refused)
    _check_refused(_ask_plainly(editor, fresh_tag()))  # at once: no dialog comes unbidden
    assert not editor.browser.texts(FIRST, DIALOG)
    assert eventually(lambda: "may not be used yet" in editor.status(), 30)
    editor.browser.click(FIRST, STATUS)
    _answered(editor, "Allow")
    assert eventually(lambda: "connected to toolwire" in editor.status(), 30)
    tag = fresh_tag()
    answer = _ask_plainly(editor, tag)
    assert answer.status == 200, answer.body
    assert f"Hello {tag} world." in answer.body.decode()


def _ask_plainly(editor: Stage, tag: str) -> Bare:
    opened = Chat(editor, PRIVATE, is_streamed=False)  # type: ignore[arg-type]
    opened.say(f"SC=plain TAG={tag}")
    return opened.bare()


def _answered(editor: Stage, button: str) -> str:
    """What the dialog says, once somebody has pressed the button."""
    editor.browser.wait(FIRST, DIALOG)
    words = " ".join(editor.browser.texts(FIRST, DIALOG))
    editor.browser.click(FIRST, f'{DIALOG} .monaco-button:has-text("{button}")')
    editor.browser.wait_gone(FIRST, DIALOG)
    return words


def _check_refused(answer: Bare) -> None:
    assert answer.status == 403, answer.body
    error = json.loads(answer.body)["error"]
    assert error["code"] == "consent_required"
    assert "press Allow" in error["message"]
