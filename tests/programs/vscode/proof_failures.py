"""How requests to a model of VS Code fail, as the client sees it, and how they end when the client disconnects."""

from __future__ import annotations

import http.client
import json
import socket

import anthropic
import openai
import pytest

from tests.contract.judge.validate import check
from tests.programs.codex_backend.clients import KEY
from tests.programs.vscode.conftest import Opening
from tests.programs.vscode.stage import Stage

# scene: the status, and what of the error's words must arrive
REFUSALS: dict[str, tuple[int, str]] = {
    "blocked": (429, "too much of it"),
    "limited": (429, "rate-limited"),
    "quota": (429, "used your allowance"),
    "context": (400, "token limit"),
    "refused": (400, "bad tool schema"),
    "forbidden": (403, "switched off"),  # by the provider, which is asked again
    "plainly": (502, "the cat sat on the cable"),
}
LIMITS: dict[str, dict[str, object]] = {
    "chat": {"stop": ["never", "w7 "]},
    "messages": {"stop_sequences": ["never", "w7 "]},
    "responses": {"max_output_tokens": 10},  # has no stop sequences
}


@pytest.mark.parametrize("scene", REFUSALS)
def test_a_refusal(editor: Stage, client: Opening, tag: str, scene: str) -> None:
    status, words = REFUSALS[scene]
    opened = client()
    opened.say(f"SC={scene} TAG={tag}")
    answer = opened.bare()
    story = f"{answer.status} {answer.body.decode('utf-8', 'replace')[:2000]}"
    assert answer.status == status, story
    assert words in story
    report = check(opened.dialect, answer.body, answer.status, answer.kind, opened.body())
    assert not report.errors, f"{report.text()}\n{story}"
    assert len(editor.seen(tag)) == 1  # each request counts against somebody's plan


@pytest.mark.parametrize("scene", ["blocked", "refused"])
def test_a_refusal_as_the_sdk_reports_it(client: Opening, tag: str, scene: str) -> None:
    opened = client()
    opened.say(f"SC={scene} TAG={tag}")
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError)) as told:
        opened.ask()
    assert told.value.status_code == REFUSALS[scene][0]


def test_an_answer_that_breaks_off_is_incomplete(editor: Stage, client: Opening, tag: str) -> None:
    opened = client()
    opened.say(f"SC=midway TAG={tag}")
    answer = opened.bare()
    words = answer.body.decode()
    if opened.is_streamed:
        marks = {"chat": '"error"', "responses": '"response.failed"', "messages": "event: error"}
        assert answer.status == 200
        assert marks[opened.dialect] in words
        assert words.count('"half ') >= 1
    else:
        assert answer.status == 502, words
    assert "the cat sat on the cable" in words
    assert len(editor.seen(tag)) == 1


@pytest.mark.parametrize("scene", ["slow", "silent"])
def test_a_client_that_disconnects(editor: Stage, client: Opening, tag: str, scene: str) -> None:
    """The provider's token says so."""
    opened = client()
    opened.say(f"SC={scene} TAG={tag}")
    connection = opened.begin()
    assert editor.becomes(tag, "open")
    if opened.is_streamed and scene == "slow":
        assert connection.getresponse().read(10)
    _leave(connection)
    assert editor.becomes(tag, "cancelled"), editor.seen(tag)


def test_a_model_that_is_not_there(client: Opening) -> None:
    opened = client("no-such-model")
    opened.say("hello")
    answer = opened.bare()
    assert answer.status == 404, answer.body
    assert "no-such-model" in json.dumps(json.loads(answer.body))


def test_text_ends_at_the_stop_sequence_of_the_client(editor: Stage, client: Opening, tag: str) -> None:
    """VS Code has no member for max_tokens or a list of stops; the gateway sees to it, and the provider is stopped."""
    opened = client()
    opened.say(f"SC=slow TAG={tag}")
    body = opened.body() | LIMITS[opened.dialect] | {"stream": opened.is_streamed}
    headers = {"content-type": "application/json", "x-api-key": KEY}
    connection = http.client.HTTPConnection("127.0.0.1", editor.port, timeout=60)
    connection.request("POST", opened.path, json.dumps(body), headers)
    words = connection.getresponse().read().decode()
    connection.close()
    assert "w3" in words
    if opened.dialect == "responses":
        assert "w70" not in words  # 256 bytes, which no limit is below
        assert '"reason":"max_output_tokens"' in words
    else:
        assert "w30" not in words
        assert "w7" not in words.replace('"stop_sequence":"w7 "', "")
    assert editor.becomes(tag, "cancelled"), editor.seen(tag)


def _leave(connection: http.client.HTTPConnection) -> None:
    """With everything that was not read: the other side must not wait for more."""
    if connection.sock is not None:
        connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
