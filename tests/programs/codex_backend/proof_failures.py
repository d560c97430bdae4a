"""Errors of the provider as the client sees them: the status, the form of its dialect, and that the next request works."""

from __future__ import annotations

import json
import time
from typing import Any

import anthropic
import openai
import pytest

from tests.contract.judge.validate import check
from tests.programs.codex_backend.clients import Client
from tests.programs.codex_backend.conftest import Opening
from tests.programs.codex_backend.stage import UNREACHED, Stage
from tests.programs.codex_backend.toolbox import WEATHER

# For a server error either status is correct: its own, or that of a gateway.
REFUSALS: dict[str, tuple[set[int], str]] = {
    "e500": ({500, 502, 503}, ""),
    "e429": ({429}, ""),
    "equota": ({429}, ""),
    "e401": ({401}, ""),
    "e404": ({404}, "The model does not exist"),
    "e400": ({400}, "Unsupported parameter"),
    "context": ({400}, "context"),
    "failed": ({500, 502, 503}, ""),
}
CUTS = ("cut", "incomplete", "filter")


@pytest.mark.parametrize("scene", REFUSALS)
def test_a_refusal(codex_stage: Stage, client: Opening, tag: str, scene: str) -> None:
    statuses, words = REFUSALS[scene]
    opened = client("native")
    opened.say(f"SC={scene} TAG={tag}")
    answer = opened.bare()
    story = f"{answer.status} {answer.body.decode('utf-8', 'replace')[:2000]}"
    assert answer.status in statuses, story
    assert words in story
    report = check(opened.dialect, answer.body, answer.status, answer.kind, opened.body())
    assert not report.errors, f"{report.text()}\n{story}"
    assert _works(client, tag)


@pytest.mark.parametrize("scene", REFUSALS)
def test_a_refusal_as_the_sdk_reports_it(client: Opening, tag: str, scene: str) -> None:
    opened = client("native")
    opened.say(f"SC={scene} TAG={tag}")
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as told:
        opened.ask()
    assert told.value.status_code in REFUSALS[scene][0]


@pytest.mark.parametrize("scene", ["e400", "e401", "context"])
def test_what_cannot_get_better_is_not_tried_again(codex_stage: Stage, client: Opening, tag: str, scene: str) -> None:
    opened = client("native")
    opened.say(f"SC={scene} TAG={tag}")
    opened.bare()
    assert len(codex_stage.seen(tag)) == 1


@pytest.mark.parametrize("scene", CUTS)
def test_an_answer_that_is_cut_is_incomplete(client: Opening, tag: str, scene: str) -> None:
    """Text is never sent twice, and a broken end is not reported as an end."""
    opened = client("native")
    opened.say(f"SC={scene} TAG={tag}")
    answer = opened.bare()
    words = answer.body.decode()
    assert len([line for line in words.splitlines() if "delta" in line and '"half ' in line]) <= 1
    if answer.status == 200:
        assert _is_marked(opened, words), words[-2000:]
    else:
        assert answer.status in (500, 502, 503), words
        assert not check(opened.dialect, answer.body, answer.status, answer.kind, opened.body()).errors, words
    assert _works(client, tag)


def test_a_model_that_never_writes_arguments_that_are_json(codex_stage: Stage, client: Opening, tag: str) -> None:
    opened = client("native", WEATHER)
    opened.say(f"SC=broken TAG={tag}")
    assert b"then the model was stopped" in opened.bare().body
    assert _works(client, tag)
    assert len(codex_stage.seen(tag)) <= 8


def test_a_provider_that_cannot_be_reached(client: Opening) -> None:
    """Well before the first-byte timeout."""
    opened = client(UNREACHED)
    opened.say("Is anybody there?")
    since = time.monotonic()
    answer = opened.bare()
    assert time.monotonic() - since < 30
    assert answer.status == 502, answer.body
    assert b"127.0.0.1" not in answer.body


def _works(client: Opening, tag: str) -> bool:
    opened = client("native")
    opened.say(f"SC=plain TAG={tag}after")
    return opened.ask().text == f"Hello {tag}after world."


def _is_marked(opened: Client, words: str) -> bool:
    """Whether an answer with status 200 is marked as incomplete in its dialect."""
    if opened.is_streamed:
        marks = {
            "chat": ('"error"', '"finish_reason":"length"', '"finish_reason":"content_filter"'),
            "responses": ('"response.failed"', '"response.incomplete"'),
            "messages": ("event: error", '"stop_reason":"max_tokens"', '"stop_reason":"refusal"'),
        }
        return any(mark in words.replace('": "', '":"') for mark in marks[opened.dialect])
    value: Any = json.loads(words)
    ends = {
        "chat": lambda: value["choices"][0]["finish_reason"] in ("length", "content_filter"),
        "responses": lambda: value["status"] in ("incomplete", "failed"),
        "messages": lambda: value["stop_reason"] in ("max_tokens", "refusal"),
    }
    return bool(ends[opened.dialect]())
