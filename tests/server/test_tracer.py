"""`log = "debug"` and `log = "trace"`: every message to and from a back end, content only in the file, secrets nowhere."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.server.answers import ARGUMENTS, DIALECTS, PATHS, question, streamed, whole
from tests.server.conftest import backends_of
from tests.server.harness import Upstream, ask, gateway, reply, server_config
from toolwire.config.file import Config, with_backends
from toolwire.server.tracer import Tracer
from toolwire.telemetry import wire_trace

SECRET_WORDS = "SECRET WORDS"
CLIENT_KEY = "sk-of-the-client-1234"


def served(
    upstream: Upstream, capfd: pytest.CaptureFixture[str], dialect: str = "chat", *, stream: bool = True, **fields: Any
) -> list[str]:
    """The lines of a gateway that was asked once."""
    answer = (streamed if stream else whole)(dialect, text=SECRET_WORDS, call=ARGUMENTS)
    upstream.on(f"traced-{dialect}", answer)
    capfd.readouterr()
    config = with_backends(Config(server=server_config(**fields)), backends_of(upstream))
    with gateway(config) as server:
        body = question(dialect, f"{dialect}/traced-{dialect}", stream=stream)
        headers = {"x-request-id": "mine", "authorization": f"Bearer {CLIENT_KEY}"}
        assert ask(server.port, "POST", PATHS[dialect], body, headers).status == 200
    assert not wire_trace.active
    return capfd.readouterr().err.splitlines()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_debug_has_a_line_for_each_message(
    upstream: Upstream, capfd: pytest.CaptureFixture[str], dialect: str, stream: bool
) -> None:
    lines = served(upstream, capfd, dialect, stream=stream, log="debug")
    wire = [line for line in lines if " wire " in line]
    assert all(" debug mine wire " in line for line in wire)
    assert f" -> POST {upstream.url}{PATHS[dialect]} " in wire[0]
    assert "model: traced-" in wire[0]
    assert "<- 200 " in wire[1]
    assert stream or "<- end " in wire[-1]  # of a stream nothing is read behind its last event
    assert len(wire) > (8 if stream else 3)
    text = "\n".join(lines)
    for hidden in (SECRET_WORDS, "Zürich", "What is the weather", "sk-upstream", CLIENT_KEY):
        assert hidden not in text


@pytest.mark.parametrize("level", ["info", "warning"])
def test_other_levels_have_no_such_line(upstream: Upstream, capfd: pytest.CaptureFixture[str], level: str) -> None:
    assert not [line for line in served(upstream, capfd, log=level) if " wire " in line or " debug " in line]


def test_calls_are_named_at_debug(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    calls = [line.split(" ", 2)[2] for line in served(upstream, capfd, log="debug") if " debug mine call " in line]
    assert [call.split(" id=")[0] for call in calls] == ["mine call weather"]
    assert calls[0].endswith(" right")


def test_trace_has_the_content_in_a_file_that_is_the_owners_alone(
    upstream: Upstream, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "What is the weather")
    path = tmp_path / "logs" / "trace.jsonl"
    lines = served(upstream, capfd, log="trace", trace_file=str(path))
    assert [line for line in lines if str(path) in line]
    assert SECRET_WORDS not in "\n".join(lines)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text(encoding="utf-8")
    entries = [json.loads(line) for line in text.splitlines()]
    assert {entry["request"] for entry in entries} == {"mine"}
    sent, head, *received = entries
    assert (sent["direction"], head["direction"]) == ("sent", "received")
    assert sent["message"]["headers"]["authorization"] == "[hidden]"
    assert sent["message"]["body"]["messages"][0]["content"] == "[hidden]?"  # which the environment calls a key
    chunks = [piece["message"] for piece in received if isinstance(piece["message"], dict)]
    said = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]
    assert "".join(said) == SECRET_WORDS
    assert "sk-upstream" not in text


def test_a_refusal_and_a_list_of_models_are_traced(upstream: Upstream, capfd: pytest.CaptureFixture[str]) -> None:
    upstream.on("refused-trace", [reply(400, b'{"error": {"message": "SECRET WORDS", "type": "t", "code": "c"}}')])
    capfd.readouterr()
    with gateway(with_backends(Config(server=server_config(log="debug")), backends_of(upstream, models=()))) as server:
        assert ask(server.port, "POST", PATHS["chat"], question("chat", "chat/refused-trace")).status == 400
        ask(server.port, "GET", "/v1/models")
    text = capfd.readouterr().err
    assert "<- a refusal " in text
    assert "code: c" in text
    assert "/v1/models " in text
    wire = [line for line in text.splitlines() if " wire " in line]
    assert SECRET_WORDS not in "\n".join(wire)  # the line of the request has the message, for the owner
    assert [SECRET_WORDS in line for line in text.splitlines() if " error=" in line] == [True]


def test_a_file_that_cannot_be_opened_is_a_line_and_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[tuple[str, str]] = []
    config = Config(server=server_config(log="trace", trace_file=str(tmp_path / "file" / "trace.jsonl")))
    tracer = Tracer(config, lambda level, words, request_id="": said.append((level, words)), {})
    tracer.start()
    assert wire_trace.active
    tracer.stop()
    tracer.stop()
    [(level, words)] = said
    assert level == "warning"
    assert "cannot be opened" in words
