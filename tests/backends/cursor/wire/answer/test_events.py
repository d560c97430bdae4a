"""One answer: it begins once, ends once, and says what is known of it."""

from __future__ import annotations

from tests.backends.cursor.wire.saying import read, shown
from tests.backends.event_contract import check_events
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.answer.events import SAID, Telling
from toolwire.backends.cursor.wire.blobs import Blobs
from toolwire.errors import UpstreamError
from toolwire.events import Finished, Started
from toolwire.types import Loss

UPDATES = {field.name for field in agent.InteractionUpdate.DESCRIPTOR.oneofs_by_name["message"].fields}


def telling() -> Telling:
    return Telling("m", Blobs({}))


def test_updates_that_say_something_exist() -> None:
    assert set(SAID) <= UPDATES


def test_it_begins_once_and_only_when_there_is_something() -> None:
    told = telling()
    assert told.after_begin([]) == []
    assert told.begin() == [Started(id="", model="m")]
    assert told.begin() == []


def test_losses_of_the_blobs_are_told_when_something_else_is() -> None:
    blobs = Blobs({})
    told = Telling("m", blobs)
    blobs.losses.append(Loss("cursor.blob", "x", "why"))
    events = told.say("text_delta", agent.TextDeltaUpdate(text="a")) + told.finish()
    check_events(events)
    assert shown(events) == ["noted cursor.blob", "text a", "stop"]


def test_how_it_ended() -> None:
    told = telling()
    told.speech.call("1", "f", "{}")
    ended = told.finish()[-1]
    assert isinstance(ended, Finished)
    assert (ended.choices[0].reason, ended.choices[0].raw_reason) == ("tool_calls", "exec")
    told.next()
    ended = (told.say("text_delta", agent.TextDeltaUpdate(text="a")) + told.say("turn_ended", agent.TurnEndedUpdate()))[
        -1
    ]
    assert isinstance(ended, Finished)
    assert (ended.choices[0].reason, ended.choices[0].raw_reason) == ("stop", "turn_ended")


def test_a_failure_tells_what_was_held() -> None:
    told = telling()
    events = told.say("text_delta", agent.TextDeltaUpdate(text="<thi")) + told.fail(UpstreamError("x", code="gone"))
    check_events(events)
    assert shown(events) == ["text <thi", "failed gone"]


def test_a_turn_without_text_waits_for_a_blob() -> None:
    blobs = Blobs({})
    told = Telling("m", blobs)
    events = told.say("thinking_delta", agent.ThinkingDeltaUpdate(text="hm"))
    events += told.say("turn_ended", agent.TurnEndedUpdate())
    assert not told.is_over
    data = b'{"role":"assistant","content":"Hi"}'
    message = agent.KvServerMessage(id=1, set_blob_args=agent.SetBlobArgs(blob_id=b"i", blob_data=data))
    assert read(blobs.answer(message)).kv_client_message.id == 1
    events += told.finish()
    check_events(events)
    assert shown(events) == ["thought hm", "text Hi", "stop"]
