"""Turns without tools: what the client gets, what the model gets, and that Codex adds nothing."""

from __future__ import annotations

import json
from typing import Any

from tests.programs.codex_backend.binaries import NEWEST
from tests.programs.codex_backend.conftest import Opening
from tests.programs.codex_backend.stage import MODEL, USERS_OWN, Stage

# Tools that version 0.89 always offers.
_STAYING = {"update_plan", "view_image", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"}
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_a_plain_turn(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend)
    opened.say(f"SC=plain TAG={tag}")
    answer = opened.ask()
    assert (answer.text, answer.calls, answer.reason) == (f"Hello {tag} world.", [], opened.ended)
    assert answer.tokens == (100, 20)
    assert [record["state"] for record in codex_stage.seen(tag)] == ["done"]


def test_the_judge_finds_no_fault(client: Opening, tag: str) -> None:
    opened = client("native")
    opened.say(f"SC=plain TAG={tag}")
    assert tag.encode() in opened.judged().body


def test_a_conversation_continues(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend)
    opened.say(f"SC=plain TAG={tag}x")
    opened.ask()
    opened.say(f"SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    sent = codex_stage.seen(tag)[-1]["body"]["input"]
    words = json.dumps(sent)
    assert words.index(f"TAG={tag}x") < words.index(f"Hello {tag}x world.") < words.rindex(f"TAG={tag}")


def test_thoughts_are_kept_apart(client: Opening, tag: str) -> None:
    opened = client("native")
    opened.say(f"SC=think TAG={tag}")
    answer = opened.ask()
    assert answer.text == f"Hello {tag} world."
    assert "Thinking hard" not in answer.text


def test_codex_is_a_bare_model(codex_stage: Stage, client: Opening, tag: str) -> None:
    opened = client("native")
    opened.say(f"SC=plain TAG={tag}")
    opened.ask()
    body = codex_stage.seen(tag)[-1]["body"]
    names = {tool.get("name") or tool["type"] for tool in body["tools"]}
    assert body["model"] == MODEL
    assert names <= (set() if codex_stage.version == NEWEST else _STAYING)
    assert "USERS-OWN" not in json.dumps(body)


def test_what_is_the_users_stays_so(codex_stage: Stage, client: Opening, tag: str) -> None:
    opened = client("native")
    opened.say(f"SC=plain TAG={tag}")
    opened.ask()
    own = codex_stage.folder / ".codex"
    assert [path.name for path in own.iterdir()] == ["config.toml"]
    assert (own / "config.toml").read_text(encoding="utf-8") == USERS_OWN


def test_an_image_arrives(codex_stage: Stage, client: Opening, tag: str) -> None:
    opened = client("native")
    opened.history.append({"role": "user", "content": _image_and(f"SC=plain TAG={tag}", opened.dialect)})
    assert opened.ask().text == f"Hello {tag} world."
    assert _PIXEL in json.dumps(codex_stage.seen(tag)[-1]["body"]["input"])


def _image_and(text: str, dialect: str) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{_PIXEL}"
    source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    return {
        "chat": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}],
        "responses": [
            {"type": "input_image", "image_url": url, "detail": "auto"},
            {"type": "input_text", "text": text},
        ],
        "messages": [{"type": "image", "source": source}, {"type": "text", "text": text}],
    }[dialect]
