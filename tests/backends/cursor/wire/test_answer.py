"""One answer: it begins once, ends once, and says what is known of it."""

from __future__ import annotations

from tests.backends.cursor.wire.server_messages import lines_of, read
from tests.backends.event_contract import check_events
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.answer import OUTPUT, AnswerEvents, AnswerParts, TokenMeter
from toolwire.backends.cursor.wire.blobs import Blobs, UnsentText
from toolwire.errors import UpstreamError
from toolwire.events import Event, Finished, Started
from toolwire.types import Loss, Usage

UPDATES = {field.name for field in agent.InteractionUpdate.DESCRIPTOR.oneofs_by_name["message"].fields}


def new_answer() -> AnswerEvents:
    return AnswerEvents("m", Blobs({}))


def test_updates_that_say_something_exist() -> None:
    assert set(OUTPUT) <= UPDATES


def test_it_begins_once_and_only_when_there_is_something() -> None:
    answer = new_answer()
    assert answer.update("text_delta", agent.TextDeltaUpdate(text="")) == []
    assert answer.note(Loss("a", "b", "c"))[0] == Started(id="", model="m")
    assert not any(isinstance(event, Started) for event in answer.finish())


def test_losses_of_the_blobs_are_sent_when_something_else_is() -> None:
    blobs = Blobs({})
    answer = AnswerEvents("m", blobs)
    blobs.losses.append(Loss("cursor.blob", "x", "why"))
    events = answer.update("text_delta", agent.TextDeltaUpdate(text="a")) + answer.finish()
    check_events(events)
    assert lines_of(events) == ["noted cursor.blob", "text a", "stop"]


def test_how_it_ended() -> None:
    answer = new_answer()
    answer.parts.call("1", "f", "{}")
    ended = answer.finish()[-1]
    assert isinstance(ended, Finished)
    assert (ended.choices[0].reason, ended.choices[0].raw_reason) == ("tool_calls", "exec")
    answer.start_next()
    ended = (
        answer.update("text_delta", agent.TextDeltaUpdate(text="a"))
        + answer.update("turn_ended", agent.TurnEndedUpdate())
    )[-1]
    assert isinstance(ended, Finished)
    assert (ended.choices[0].reason, ended.choices[0].raw_reason) == ("stop", "turn_ended")


def test_a_failure_sends_what_was_held() -> None:
    answer = new_answer()
    events = answer.update("text_delta", agent.TextDeltaUpdate(text="<thi")) + answer.fail(
        UpstreamError("x", code="gone")
    )
    check_events(events)
    assert lines_of(events) == ["text <thi", "failed gone"]


def test_a_turn_without_text_waits_for_a_blob() -> None:
    blobs = Blobs({})
    answer = AnswerEvents("m", blobs)
    events = answer.update("thinking_delta", agent.ThinkingDeltaUpdate(text="hm"))
    events += answer.update("turn_ended", agent.TurnEndedUpdate())
    assert not answer.is_over
    data = b'{"role":"assistant","content":"Hi"}'
    message = agent.KvServerMessage(id=1, set_blob_args=agent.SetBlobArgs(blob_id=b"i", blob_data=data))
    assert read(blobs.answer(message)).kv_client_message.id == 1
    events += answer.finish()
    check_events(events)
    assert lines_of(events) == ["thought hm", "text Hi", "stop"]


def checked(events: list[Event]) -> list[str]:
    check_events([Started(id="", model="m"), *events], is_cut=True)
    return lines_of(events)


def test_whatever_begins_ends_what_was_open() -> None:
    unsent = UnsentText()
    parts = AnswerParts(unsent)
    events = (
        parts.add_text("a")
        + parts.add_thought("b")
        + parts.add_text("c")
        + parts.call("1", "f", "{}")
        + parts.add_text("d")
    )
    assert checked(events + parts.pause()) == ["text a", "thought b", "text c", "call 1 f {}", "text d"]
    assert unsent.add_blob("acd!")
    assert unsent.next_text() == "!"  # thoughts and calls are no text
    assert [(call.id, call.args) for call in parts.calls] == [("1", {})]


def test_nothing_said_begins_nothing() -> None:
    unsent = UnsentText()
    parts = AnswerParts(unsent)
    assert parts.add_text("") + parts.add_thought("") + parts.end_thought() + parts.pause() == []
    assert not unsent.has_step


def test_a_mark_that_was_none_is_text() -> None:
    parts = AnswerParts(UnsentText())
    assert checked(parts.add_text("<thi") + parts.call("1", "f", "{}")) == ["text <thi", "call 1 f {}"]


def test_a_thought_that_is_complete_ends() -> None:
    parts = AnswerParts(UnsentText())
    events = (
        parts.add_thought("a")
        + parts.end_thought()
        + parts.add_thought("b")
        + parts.add_text("c")
        + parts.end_thought()
    )
    assert checked(events + parts.add_text("d") + parts.pause()) == ["thought a", "thought b", "text cd"]


def test_nothing_known_is_nothing_sent() -> None:
    assert TokenMeter().stop() is None
    assert TokenMeter().end(agent.TurnEndedUpdate()) is None


def test_an_answer_that_stops_counts_what_came_in_it() -> None:
    meter = TokenMeter()
    meter.checkpoint(agent.ConversationTokenDetails(used_tokens=50, max_tokens=90))
    meter.checkpoint(agent.ConversationTokenDetails())
    meter.add_output(3)
    meter.add_output(-9)
    assert meter.stop() == Usage(input=50, output=3)
    meter.add_output(2)
    assert meter.stop() == Usage(input=50, output=2)
    assert meter.limit == 90


def test_the_last_answer_is_the_turn_without_the_answers_before() -> None:
    meter = TokenMeter()
    meter.add_output(30)
    meter.stop()
    meter.add_output(5)
    turn = agent.TurnEndedUpdate(
        input_tokens=100, output_tokens=36, cache_read_tokens=70, cache_write_tokens=10, reasoning_tokens=2
    )
    assert meter.end(turn) == Usage(input=100, output=6, cached=70, cache_written=10, reasoning=2)


def test_no_count_is_negative_and_no_part_larger_than_the_whole() -> None:
    meter = TokenMeter()
    meter.add_output(30)
    meter.stop()
    turn = agent.TurnEndedUpdate(input_tokens=5, output_tokens=20, cache_read_tokens=7, reasoning_tokens=9)
    assert meter.end(turn) == Usage(input=7, output=0, cached=7)
    turn = agent.TurnEndedUpdate(input_tokens=-5, output_tokens=-20, cache_write_tokens=-7, reasoning_tokens=-9)
    assert meter.end(turn) == Usage()


def test_a_turn_that_says_nothing_is_counted_as_it_came() -> None:
    meter = TokenMeter()
    meter.add_output(4)
    assert meter.end(agent.TurnEndedUpdate()) == Usage(output=4)
