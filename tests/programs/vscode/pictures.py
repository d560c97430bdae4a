"""Take the pictures of docs/vscode.md from a real VS Code: `python -m tests.programs.vscode.pictures` in the root of the repository.

The models are fake: one is the gateway's scripted back end, the others are the provider in this folder.
"""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.programs.codex_backend.clients import Chat
from tests.programs.installed import ROOT
from tests.programs.vscode.browser import Browser
from tests.programs.vscode.chatting import INPUT, PANEL, Conversing
from tests.programs.vscode.stage import FIRST, PRIVATE, STATUS, Stage

TARGET = ROOT / "docs" / "images"
DIALOG = ".monaco-dialog-box"
MODEL = "local/some-model"
LIMIT = 60_000  # bytes of a picture
_HOVER = ".workbench-hover-container"
_TIP = f'{PANEL} a[aria-label="Dismiss notification"]'
_WORDS = "This folder has one file, `a-file-of-the-project.txt`."


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder) / "stage")
        stage.size = (1200, 520)
        _play(stage)
        try:
            stage.start()
            _take(stage)
        finally:
            stage.close()
    for path in sorted(TARGET.glob("vscode-*.png")):
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {size} bytes{' TOO LARGE' if size > LIMIT else ''}")


def _play(stage: Stage) -> None:
    script = stage.folder / "script.json"
    turns = [{"calls": [{"name": "list_dir", "arguments": {"path": str(stage.project)}}]}, {"text": _WORDS}]
    script.write_text(json.dumps({"models": {MODEL.partition("/")[2]: {"turns": turns}}}), encoding="utf-8")
    with (stage.folder / "toolwire.toml").open("a", encoding="utf-8") as config:
        config.write(f'[backends.local]\nkind = "scripted"\nscript = "{script}"\n')


def _take(stage: Stage) -> None:
    browser = stage.browser
    chat = Conversing(browser, FIRST)
    chat.wake()
    chat.clear()
    if browser.labels(FIRST, _TIP):
        browser.click(FIRST, _TIP)
    _status(browser)
    chat.choose(MODEL)
    browser.click(FIRST, f'{INPUT} a[aria-label^="Models,"]')
    browser.wait(FIRST, ".action-widget input")
    time.sleep(1)
    _clip(browser, "models", ".action-widget")
    browser.press(FIRST, "Escape")
    chat.ask("Which files are here?")
    time.sleep(1)
    _clip(browser, "answer", PANEL)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_private, stage)
        browser.wait(FIRST, DIALOG)
        time.sleep(1)
        _clip(browser, "consent", DIALOG)
        browser.click(FIRST, f'{DIALOG} .monaco-button:has-text("Allow")')
        waiting.result()


def _private(stage: Stage) -> None:
    opened = Chat(stage, PRIVATE, is_streamed=False)  # type: ignore[arg-type]
    opened.say("SC=plain TAG=picture")
    opened.ask()


def _status(browser: Browser) -> None:
    """With the words that come when the mouse rests on it."""
    browser.hover(FIRST, STATUS)
    browser.wait(FIRST, _HOVER)
    time.sleep(1)
    words, bar = _box(browser, _HOVER), _box(browser, ".part.statusbar")
    left, top = words["x"] - 8, words["y"] - 8
    browser.shot(
        FIRST, TARGET / "vscode-status.png", _area(left, top, bar["x"] + bar["width"], bar["y"] + bar["height"])
    )


def _clip(browser: Browser, name: str, selector: str) -> None:
    box = _box(browser, selector)
    area = _area(box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])
    browser.shot(FIRST, TARGET / f"vscode-{name}.png", area)


def _area(left: float, top: float, right: float, bottom: float) -> dict[str, float]:
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def _box(browser: Browser, selector: str) -> dict[str, float]:
    script = "(({ x, y, width, height }) => ({ x, y, width, height }))"
    found: dict[str, float] = browser.evaluate(
        FIRST, f"{script}(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    )
    return found


if __name__ == "__main__":
    main()
