"""Much at once: a million characters either way, and eight requests that a window works on at the same time."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.programs.codex_backend.stage import fresh_tag
from tests.programs.vscode.conftest import CLIENTS, Opening
from tests.programs.vscode.stage import PLAYER, Stage
from tests.thorough import some

CROWD = 8  # the provider waits until so many have come
_FLOOD = "".join(f'{line:06} é中😀 "q\\" end\n' for line in range(50_000))


def test_a_million_characters_arrive(client: Opening, tag: str) -> None:
    assert len(_FLOOD) == 1_000_000
    opened = client()
    opened.say(f"SC=flood TAG={tag}")
    assert opened.ask().text == _FLOOD


@pytest.mark.parametrize("dialect", some(sorted(CLIENTS), ["chat"]))
def test_a_million_characters_leave(editor: Stage, dialect: str, tag: str) -> None:
    opened = CLIENTS[dialect](editor, PLAYER, is_streamed=False)  # type: ignore[arg-type]
    opened.say(f"{_FLOOD}SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    text = f"{_FLOOD}SC=plain TAG={tag}"
    given = editor.seen(tag)[-1]["messages"][-1]["content"][-1]["text"]
    assert given["sha256"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("way", ["whole", "stream"])
def test_eight_at_once(editor: Stage, way: str) -> None:
    """In all dialects beside each other."""
    dialects = [sorted(CLIENTS)[number % len(CLIENTS)] for number in range(CROWD)]

    def ask(dialect: str) -> tuple[str, str]:
        tag = fresh_tag()
        opened = CLIENTS[dialect](editor, PLAYER, is_streamed=way == "stream")  # type: ignore[arg-type]
        opened.say(f"SC=crowd TAG={tag}")
        return opened.ask().text, f"Hello {tag} world."

    with ThreadPoolExecutor(CROWD) as pool:
        for said, expected in pool.map(ask, dialects):
            assert said == expected
