"""Speech: one part is open at a time, indices are dense, and calls are whole."""

from __future__ import annotations

from tests.backends.cursor.wire.saying import shown
from tests.backends.event_contract import check_events
from toolwire.backends.cursor.wire.answer.blob_text import Untold
from toolwire.backends.cursor.wire.answer.parts import Speech
from toolwire.events import Event, Started


def checked(events: list[Event]) -> list[str]:
    check_events([Started(id="", model="m"), *events], is_cut=True)
    return shown(events)


def test_whatever_begins_ends_what_was_open() -> None:
    untold = Untold()
    speech = Speech(untold)
    events = speech.say("a") + speech.think("b") + speech.say("c") + speech.call("1", "f", "{}") + speech.say("d")
    assert checked(events + speech.pause()) == ["text a", "thought b", "text c", "call 1 f {}", "text d"]
    assert untold.came("acd!")
    assert untold.next() == "!"  # thoughts and calls are no text
    assert [(call.id, call.args) for call in speech.calls] == [("1", {})]


def test_nothing_said_begins_nothing() -> None:
    untold = Untold()
    speech = Speech(untold)
    assert speech.say("") + speech.think("") + speech.thought() + speech.pause() == []
    assert not untold.has_spoken


def test_a_mark_that_was_none_is_text() -> None:
    speech = Speech(Untold())
    assert checked(speech.say("<thi") + speech.call("1", "f", "{}")) == ["text <thi", "call 1 f {}"]


def test_a_thought_that_is_complete_ends() -> None:
    speech = Speech(Untold())
    events = speech.think("a") + speech.thought() + speech.think("b") + speech.say("c") + speech.thought()
    assert checked(events + speech.say("d") + speech.pause()) == ["thought a", "thought b", "text cd"]
