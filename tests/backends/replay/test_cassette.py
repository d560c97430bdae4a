from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwire.backends.replay.cassette import read_cassette
from toolwire.errors import ConfigError
from toolwire.events import Finished, fold
from toolwire.types import Text


def line(**changes: Any) -> dict[str, Any]:
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    message = {"role": "assistant", "content": "Hello."}
    answer = {
        "id": "a",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    response = {"status": 200, "headers": [], "body": json.dumps(answer), "frames": None, "size": 1, "truncated": False}
    request = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [],
        "body": body,
        "size": 1,
        "truncated": False,
    }
    client = {"dialect": "chat", "url": "", "request": request, "response": response}
    return {"version": 1, "summary": {"model": "m", "new_member": 1}, "client": client | changes, "upstream": []}


def read(folder: Path, *lines: Any) -> list[Any]:
    file = folder / "c.jsonl"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in lines))
    return read_cassette(file)


def test_an_entry_has_its_request_and_its_answer(tmp_path: Path) -> None:
    (entry,) = read(tmp_path, line(), "")
    assert (entry.number, entry.dialect, entry.model, entry.is_partial) == (1, "chat", "m", False)
    answer = fold(event for step in entry.answer for event in step.events)
    assert answer.parts_of(0) == (Text(text="Hello."),)


def test_frames_have_their_times(tmp_path: Path) -> None:
    chunk = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    texts = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in ("Hel", "lo.")]
    texts.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    frames = [{"t": 2.0 + number, "data": f"data: {json.dumps(chunk | text)}\n\n"} for number, text in enumerate(texts)]
    frames.append({"t": 5.0, "data": "data: [DONE]\n\n"})
    (entry,) = read(tmp_path, line(response={"status": 200, "body": None, "frames": frames}))
    assert [step.t for step in entry.answer] == [0.0, 1.0, 3.0]
    assert isinstance(entry.answer[-1].events[-1], Finished)


def test_a_refused_request_is_refused_again(tmp_path: Path) -> None:
    body = json.dumps({"error": {"message": "slow down", "type": "rate_limit_error"}})
    (entry,) = read(tmp_path, line(response={"status": 429, "body": body}))
    assert entry.error.status == 429
    assert "slow down" in entry.error.message


def test_flows_without_an_answer_are_skipped(tmp_path: Path) -> None:
    assert read(tmp_path, line(response=None), line(request={"path": "/v1/messages/count_tokens", "body": "{}"})) == []


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("no json", "line 1 is no recorded flow"),
        ({"a": 1}, "line 1 is no recorded flow"),
        (line(dialect="morse"), "found the dialect"),
        (line(request={"path": "/v1/chat/completions", "body": "{", "truncated": True}), "recorded only in part"),
        (line(request={"path": "/v1/chat/completions", "body": "{"}), "line 1: "),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, broken: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, broken)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_cassette(tmp_path / "none.jsonl")
