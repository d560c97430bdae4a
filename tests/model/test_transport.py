"""Streaming, stop sequences, disconnects and parallel slots on a real server with a real tokenizer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.model.conftest import ModelGateway, chat_body
from tests.server.harness import ask, connected, read_until, request_bytes, wait_until

pytestmark = pytest.mark.slow

QUESTION = "Name three colours."


def streamed_text(answer: Any) -> tuple[str, list[Any]]:
    chunks = [data for _, data in answer.events if isinstance(data, dict)]
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices), chunks


@pytest.mark.parametrize("backend", ["native", "retry"])
def test_stream_and_body_have_the_same_text(model: ModelGateway, backend: str) -> None:
    whole = model.chat(backend, QUESTION).json["choices"][0]["message"]["content"]
    text, chunks = streamed_text(model.chat(backend, QUESTION, stream=True))
    assert text == whole
    assert len(chunks) > 10  # tokens arrive one by one


def test_stop_sequence_ends_the_text_before_it(model: ModelGateway) -> None:
    text = model.chat("native", QUESTION).json["choices"][0]["message"]["content"]
    stop = text.split()[3]
    answer = model.chat("native", QUESTION, stop=[stop]).json["choices"][0]
    assert answer["finish_reason"] == "stop"
    assert answer["message"]["content"].rstrip() == text[: text.index(stop)].rstrip()


def test_messages_client_gets_the_stop_sequence_of_the_server(model: ModelGateway) -> None:
    body = {
        "model": "native/m",
        "max_tokens": 60,
        "temperature": 0,
        "messages": [{"role": "user", "content": QUESTION}],
    }
    text = ask(model.port, "POST", "/v1/messages", body).json["content"][0]["text"]
    stop = text.split()[3]
    answer = ask(model.port, "POST", "/v1/messages", body | {"stop_sequences": [stop]}).json
    assert answer["content"][0]["text"].rstrip() == text[: text.index(stop)].rstrip()


def test_usage_is_that_of_the_tokenizer(model: ModelGateway) -> None:
    usage = model.chat("native", QUESTION, max_tokens=7).json["usage"]
    assert usage["completion_tokens"] == 7
    assert 20 < usage["prompt_tokens"] < 60


@pytest.mark.parametrize("backend", ["native", "retry"])
def test_slot_becomes_free_when_the_client_disconnects(model: ModelGateway, backend: str) -> None:
    wait_until(lambda: model.server.busy_slots() == 0)
    body = chat_body(backend, "Write a very long story.", stream=True, max_tokens=3000)
    with connected(model.port, 60.0) as connection:
        connection.sendall(request_bytes("/v1/chat/completions", body))
        read_until(connection, b'"content"')
        assert model.server.busy_slots() == 1
    wait_until(lambda: model.server.busy_slots() == 0, 10.0)


def test_parallel_requests_use_parallel_slots_and_keep_their_answers(model: ModelGateway) -> None:
    questions = ["Name three colours.", "Name three animals.", "Count to five.", "Name a city."]
    alone = [model.chat("native", text, max_tokens=20).json["choices"][0]["message"]["content"] for text in questions]

    def streamed(text: str) -> str:
        return streamed_text(model.chat("native", text, max_tokens=20, stream=True))[0]

    with ThreadPoolExecutor(len(questions)) as pool:
        together = list(pool.map(streamed, questions))
    assert [text.split()[:2] for text in together] == [text.split()[:2] for text in alone]
