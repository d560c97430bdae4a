"""Blobs: given when asked for, taken within bounds, and the assistant's text in them found."""

from __future__ import annotations

import json

import pytest

from tests.backends.cursor.wire.saying import read
from toolwire.backends.cursor.wire import agent, blobs
from toolwire.backends.cursor.wire.answer import blob_text as untold
from toolwire.backends.cursor.wire.answer.blob_text import Message
from toolwire.backends.cursor.wire.blobs import Blobs, assistant_message


def got(kept: Blobs, blob_id: bytes) -> agent.GetBlobResult:
    message = agent.KvServerMessage(id=3, get_blob_args=agent.GetBlobArgs(blob_id=blob_id))
    answer = read(kept.answer(message)).kv_client_message
    assert answer.id == 3
    return answer.get_blob_result


def put(kept: Blobs, blob_id: bytes, data: bytes) -> None:
    message = agent.KvServerMessage(id=4, set_blob_args=agent.SetBlobArgs(blob_id=blob_id, blob_data=data))
    answer = read(kept.answer(message)).kv_client_message
    assert answer.id == 4
    assert answer.HasField("set_blob_result")
    assert not answer.set_blob_result.HasField("error")


def assistant(text: str) -> bytes:
    return json.dumps({"role": "assistant", "content": [{"type": "text", "text": text}]}).encode()


def test_those_of_the_request_and_those_of_the_run_are_given() -> None:
    kept = Blobs({b"a": b"1", b"empty": b""})
    put(kept, b"b", b"2")
    put(kept, b"a", b"changed")
    assert got(kept, b"a").blob_data == b"1"
    assert got(kept, b"b").blob_data == b"2"
    assert got(kept, b"empty").HasField("blob_data")


def test_a_missing_one_is_said_to_be_missing() -> None:
    missing = got(Blobs({}), b"a")
    assert missing.error.message == "not found"
    assert not missing.HasField("blob_data")


def test_what_is_too_much_is_acknowledged_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "LARGEST", 100)
    monkeypatch.setattr(blobs, "MOST", 1000)
    kept = Blobs({})
    put(kept, b"large", b"x" * 101)
    for number in range(10):
        put(kept, b"%d" % number, b"x" * 90)
    put(kept, b"0", b"y" * 90)  # the room of the same one is free again
    assert [loss.feature for loss in kept.losses] == ["cursor.blob"] * 7
    assert got(kept, b"large").error.message == "not found"
    assert got(kept, b"0").blob_data == b"y" * 90
    assert got(kept, b"9").error.message == "not found"


def test_an_unknown_wish_is_answered() -> None:
    answer = read(Blobs({}).answer(agent.KvServerMessage(id=8))).kv_client_message
    assert answer.id == 8
    assert answer.get_blob_result.error.message


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (assistant("hello"), "hello"),
        (b'{"role":"assistant","content":"plain"}', "plain"),
        (
            b'{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool-call"},{"type":"text","text":"b"}]}',
            "ab",
        ),
        (b'{"role":"assistant","content":[7,{"type":"text","text":8},{"type":"reasoning","text":"r"}]}', ""),
        (b'{"role":"assistant","content":7}', ""),
        (b'{"role":"user","content":"assistant","x":"assistant"}', ""),
        (b'{"role":"assistant"', ""),
        (b'\x0a\x00"assistant"', ""),
        (b"", ""),
    ],
)
def test_the_assistants_text(data: bytes, text: str) -> None:
    message = assistant_message(data)
    assert (message.text if message is not None else "") == text


def test_the_calls_of_a_message_are_known_by_the_first_line_of_their_ids() -> None:
    parts = (
        '[{"type":"text","text":"Hi"},{"type":"tool-call","toolCallId":"a\\nb"},{"type":"tool-call","toolCallId":5}]'
    )
    assert assistant_message(f'{{"role":"assistant","content":{parts}}}'.encode()) == Message("Hi", frozenset({"a"}))


def test_the_assistants_texts_wait_to_be_told_and_the_history_does_not() -> None:
    kept = Blobs({b"old": assistant("old"), b"user": b"x"})
    put(kept, b"old", assistant("other"))
    put(kept, b"written anew", json.dumps({"role": "assistant", "content": "old"}).encode())
    assert not kept.untold
    put(kept, b"1", assistant("Hello world"))
    put(kept, b"2", b'{"role":"assistant","content":[{"type":"tool-call"}]}')
    assert kept.untold.next() == "Hello world"
    assert kept.untold.next() == ""


def test_a_text_that_is_too_long_to_wait_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untold, "MOST", 10)
    kept = Blobs({})
    put(kept, b"1", assistant("12345"))
    put(kept, b"2", assistant("678901"))
    assert [loss.feature for loss in kept.losses] == ["cursor.blob"]
    assert got(kept, b"2").blob_data == assistant("678901")
    assert (kept.untold.next(), kept.untold.next()) == ("12345", "")
