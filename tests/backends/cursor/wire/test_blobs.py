"""Blobs: given when asked for, taken within bounds, and the assistant's text in them found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.wire.server_messages import read
from toolwire.backends.cursor.wire import agent, blobs
from toolwire.backends.cursor.wire.blobs import AssistantMessage, Blobs, UnsentText, assistant_message


def get(blobs_of_run: Blobs, blob_id: bytes) -> agent.GetBlobResult:
    message = agent.KvServerMessage(id=3, get_blob_args=agent.GetBlobArgs(blob_id=blob_id))
    answer = read(blobs_of_run.answer(message)).kv_client_message
    assert answer.id == 3
    return answer.get_blob_result


def put(blobs_of_run: Blobs, blob_id: bytes, data: bytes) -> None:
    message = agent.KvServerMessage(id=4, set_blob_args=agent.SetBlobArgs(blob_id=blob_id, blob_data=data))
    answer = read(blobs_of_run.answer(message)).kv_client_message
    assert answer.id == 4
    assert answer.HasField("set_blob_result")
    assert not answer.set_blob_result.HasField("error")


def assistant(text: str) -> bytes:
    return json.dumps({"role": "assistant", "content": [{"type": "text", "text": text}]}).encode()


def test_those_of_the_request_and_those_of_the_run_are_given() -> None:
    blobs_of_run = Blobs({b"a": b"1", b"empty": b""})
    put(blobs_of_run, b"b", b"2")
    put(blobs_of_run, b"a", b"changed")
    assert get(blobs_of_run, b"a").blob_data == b"1"
    assert get(blobs_of_run, b"b").blob_data == b"2"
    assert get(blobs_of_run, b"empty").HasField("blob_data")


def test_a_missing_one_is_said_to_be_missing() -> None:
    missing = get(Blobs({}), b"a")
    assert missing.error.message == "not found"
    assert not missing.HasField("blob_data")


def test_what_is_too_much_is_acknowledged_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MAX_BLOB", 100)
    monkeypatch.setattr(blobs, "MAX_STORED", 1000)
    blobs_of_run = Blobs({})
    put(blobs_of_run, b"large", b"x" * 101)
    for number in range(10):
        put(blobs_of_run, b"%d" % number, b"x" * 90)
    put(blobs_of_run, b"0", b"y" * 90)  # the room of the same one is free again
    assert [loss.feature for loss in blobs_of_run.losses] == ["cursor.blob"] * 7
    assert get(blobs_of_run, b"large").error.message == "not found"
    assert get(blobs_of_run, b"0").blob_data == b"y" * 90
    assert get(blobs_of_run, b"9").error.message == "not found"


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
    assert assistant_message(f'{{"role":"assistant","content":{parts}}}'.encode()) == AssistantMessage(
        "Hi", frozenset({"a"})
    )


def test_the_assistants_texts_wait_to_be_sent_and_the_history_does_not() -> None:
    blobs_of_run = Blobs({b"old": assistant("old"), b"user": b"x"})
    put(blobs_of_run, b"old", assistant("other"))
    put(blobs_of_run, b"written anew", json.dumps({"role": "assistant", "content": "old"}).encode())
    assert not blobs_of_run.unsent
    put(blobs_of_run, b"1", assistant("Hello world"))
    put(blobs_of_run, b"2", b'{"role":"assistant","content":[{"type":"tool-call"}]}')
    assert blobs_of_run.unsent.next_text() == "Hello world"
    assert blobs_of_run.unsent.next_text() == ""


def test_a_text_that_is_too_long_to_wait_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MAX_UNSENT", 10)
    blobs_of_run = Blobs({})
    put(blobs_of_run, b"1", assistant("12345"))
    put(blobs_of_run, b"2", assistant("678901"))
    assert [loss.feature for loss in blobs_of_run.losses] == ["cursor.blob"]
    assert get(blobs_of_run, b"2").blob_data == assistant("678901")
    assert (blobs_of_run.unsent.next_text(), blobs_of_run.unsent.next_text()) == ("12345", "")


def rest(unsent: UnsentText) -> list[str]:
    """All that is to be told, as whoever tells it does."""
    pieces: list[str] = []
    while text := unsent.next_text():
        pieces.append(text)
        unsent.add_sent(text)
        unsent.end_step()
    return pieces


def after(*streamed: str, came: tuple[str, ...] = ()) -> list[str]:
    """Each of the streamed texts is a step, the last of them the present one."""
    unsent = UnsentText()
    for number, text in enumerate(streamed):
        if number:
            unsent.end_step()
        if text:
            unsent.add_sent(text)
    assert all(map(unsent.add_blob, came))
    return rest(unsent)


@pytest.mark.parametrize(
    ("streamed", "came", "found"),
    [
        ((), ("Hello",), ["Hello"]),
        ((), ("One. ", "Two."), ["One. ", "Two."]),
        ((), ("One.", "One."), ["One."]),
        ((), ("One.", "One. Two."), ["One. Two."]),  # it has grown
        (("Hello",), ("Hello",), []),
        (("He",), ("Hello",), ["llo"]),
        (("Hello",), (" Hello\n",), []),
        (("Bye",), ("Hello",), []),  # another wording
        (("One.", ""), ("One.",), []),  # of the step before
        (("One.", ""), ("One.", "Two."), ["Two."]),
        (("One.", ""), ("One.Two.",), ["Two."]),  # the whole run
        (("One.", "Two."), ("One.Two.",), []),
        (("One.", "Two."), ("One.", "Two."), []),
        (("", "Two."), ("One.", "Two."), ["One."]),
        (("Hi",), ("<think>hm</think>Hi",), []),
        ((), ("<think>hm</think>Hi",), ["<think>hm</think>Hi"]),
        (("H\ud800",), ("H\ud800\u00e9",), ["\u00e9"]),
    ],
)
def test_what_is_left_to_tell(streamed: tuple[str, ...], came: tuple[str, ...], found: list[str]) -> None:
    assert after(*streamed, came=came) == found


def test_what_was_reported_is_not_reported_when_it_comes_again() -> None:
    unsent = UnsentText()
    unsent.add_sent("He")
    unsent.add_blob("Hello")
    assert rest(unsent) == ["llo"]
    unsent.add_sent("More.")
    unsent.end_step()
    assert unsent.add_blob("Hello")
    assert unsent.add_blob("More.")
    assert not unsent


def test_the_history_is_asked_for_once_and_only_if_a_text_comes() -> None:
    requested: list[int] = []

    def before() -> list[AssistantMessage]:
        requested.append(1)
        return [AssistantMessage("old")]

    unsent = UnsentText(before)
    unsent.add_sent("x")
    assert requested == []
    assert unsent.add_blob("old")
    assert unsent.add_blob("new")
    assert requested == [1]
    assert len(unsent._waiting) == 1


def test_a_text_that_was_sent_before_is_new_with_calls_of_its_own() -> None:
    unsent = UnsentText(lambda: [AssistantMessage("Look.", frozenset({"old"}))])
    unsent.add_blob("Look.", frozenset({"old"}))
    assert rest(unsent) == []
    unsent.end_answer()
    unsent.add_call("one")
    unsent.add_blob("Look.", frozenset({"one"}))
    unsent.add_sent("Streamed.")
    unsent.end_step()
    assert rest(unsent) == []
    unsent.add_blob("Look.", frozenset({"two"}))
    assert rest(unsent) == ["Look."]


def test_a_repetition_counts_where_nothing_else_came() -> None:
    unsent = UnsentText()
    unsent.add_sent("Done.")
    unsent.end_step()
    unsent.end_answer()
    unsent.add_blob("Done.")  # the copy of what was streamed
    assert unsent.take_repetition() == ""
    unsent.add_blob("Done.")
    assert rest(unsent) == []  # the run streams its text
    assert unsent.take_repetition() == "Done."
    assert unsent.take_repetition() == ""


def test_what_waits_is_bounded_and_what_was_reported_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MAX_UNSENT", 4)
    unsent = UnsentText()
    assert [unsent.add_blob("ab"), unsent.add_blob("cd"), unsent.add_blob("e")] == [True, True, False]
    assert rest(unsent) == ["ab", "cd"]
    assert unsent.add_blob("efgh")


@given(st.lists(st.text(st.characters(categories=["L"]), min_size=1), max_size=6), st.integers(0, 40))
def test_a_run_is_sent_whole_wherever_the_stream_stopped(steps: list[str], cut: int) -> None:
    """The blob of all that was said in the run adds exactly what was not streamed."""
    whole = "".join(steps)
    unsent = UnsentText()
    if whole[:cut]:
        unsent.add_sent(whole[:cut])
    if whole:
        unsent.add_blob(whole)
    assert whole[:cut] + "".join(rest(unsent)) == whole
