"""VS Code's own chat in a window, as a person uses it: select a model, write a message, run tools, read the answer."""

from __future__ import annotations

import time

from tests.programs.vscode.browser import Browser

INPUT = ".interactive-input-part"
PANEL = ".part.auxiliarybar"
_TURNS = ".interactive-item-container"
_WHOLE = ".interactive-response.chat-most-recent-response:not(.chat-response-loading)"
_LIST = ".action-widget .monaco-list-row.action"
_SECONDS = 90.0
_SOON = 15.0
_WAKING = 45.0
_ATTEMPTS = 3


class Conversing:
    """The chat of one window."""

    def __init__(self, browser: Browser, page: str) -> None:
        self._browser = browser
        self._page = page

    def wake(self) -> None:
        """Copilot's extension starts with the first message; it may lose that message, or ask to send it again."""
        self._browser.front(self._page)
        for _ in range(_ATTEMPTS):
            self.clear()
            self._send("hello")
            said = self._heard("hello", _WAKING)
            if said and "Please try again" not in said:
                return
        raise AssertionError(f"the chat does not wake: {self._turns()}")

    def say(self, words: str) -> None:
        """Without waiting for an answer."""
        self._send(words)

    def clear(self) -> None:
        """A new conversation. Where there is none yet, one could be cleared that is begun meanwhile."""
        if self._turns():
            self._browser.click(self._page, f'{PANEL} a.action-label[aria-label^="New Chat"]')
            self._browser.wait_gone(self._page, _TURNS)

    def choose(self, model: str) -> None:
        """The list closes when something else wants to be in front."""
        for _ in range(_ATTEMPTS):
            try:
                self._choose(model)
            except RuntimeError as error:
                fault = error
                self._browser.press(self._page, "Escape")
            else:
                return
        raise AssertionError(f"{model} cannot be chosen: {fault}")

    def ask(self, words: str) -> str:
        """The visible text after the answer."""
        for _ in range(_ATTEMPTS):
            self._send(words)
            if said := self._heard(words, _SECONDS):
                return said
        raise AssertionError(f"no answer came: {self._turns()}")

    def _choose(self, model: str) -> None:
        self._browser.click(self._page, f'{INPUT} a[aria-label^="Models,"]', _SOON)
        self._browser.wait(self._page, ".action-widget input", _SOON)
        self._browser.write(self._page, model)
        self._browser.click(self._page, f'{_LIST}:has-text("{model}")', _SOON)
        self._browser.wait(self._page, f'{INPUT} a[aria-label="Models, {model}"]', _SOON)

    def _send(self, words: str) -> None:
        for _ in range(_ATTEMPTS):
            self._browser.click(self._page, f"{INPUT} .monaco-editor")
            self._browser.press(self._page, "ControlOrMeta+A")
            self._browser.write(self._page, words)
            self._browser.press(self._page, "Enter")
            if self._is_sent():
                return
        raise AssertionError(f"the chat took no words: {self._browser.texts(self._page, INPUT)}")

    def _is_sent(self) -> bool:
        deadline = time.monotonic() + _SOON
        while time.monotonic() < deadline:
            if self._browser.texts(self._page, f"{_TURNS}.interactive-request"):
                return True
            time.sleep(0.2)
        return False

    def _heard(self, words: str, seconds: float) -> str:
        """Without the words themselves; "" where none came, or the conversation is gone."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(text.strip() for text in self._browser.texts(self._page, _WHOLE)):
                return self._turns().replace(words, "")
            if not self._turns():
                return ""
            time.sleep(0.3)
        return ""

    def _turns(self) -> str:
        return "\n".join(self._browser.texts(self._page, _TURNS))
