"""Runs of Cursor's: what the server says makes the right events, in any order, and nothing that it waits for stays unanswered."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.cursor.wire.client_tools import fits
from tests.backends.cursor.wire.server_messages import (
    BASH,
    WEATHER,
    abort,
    announced,
    call,
    checkpoint,
    completed,
    decoder,
    exec,
    get_blob,
    heartbeat,
    lines_of,
    message,
    opening,
    query,
    read,
    results,
    set_blob,
    text,
    thinking,
    thought,
    tokens,
    turn_ended,
    update,
)
from tests.backends.event_contract import check_events
from tests.thorough import examples
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire import pending as keeping
from toolwire.backends.cursor.wire.decoder import DecoderReply, RunDecoder
from toolwire.backends.cursor.wire.exec_routing import RunContext
from toolwire.backends.cursor.wire.pending import MAX_CALLS
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted
from toolwire.types import Usage
from toolwire.wire.connect import ConnectFault

CALL_1 = 'call call1 weather {"city":"Rome"}'
CALL_2 = 'call call2 weather {"city":"Oslo"}'


def events_of(run: RunDecoder, *messages: bytes) -> list[Event]:
    return [event for data in messages for event in run.receive(data).events]


def finished(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_text_and_thinking() -> None:
    run = decoder()
    events = events_of(run, thinking("let "), thinking("me"), thought(), text("Hel"), text("lo"), turn_ended())
    check_events(events)
    assert lines_of(events) == ["thought let me", "text Hello", "stop"]
    assert run.is_over
    assert run.is_ended
    assert run.has_seen_output
    assert run.end(None) == []


def test_thoughts_end_where_the_server_says_so() -> None:
    events = events_of(decoder(), thinking("one"), thought(), thinking("two"), text("x"), turn_ended())
    assert lines_of(events) == ["thought one", "thought two", "text x", "stop"]


def test_think_in_text_is_reasoning_wherever_it_is_cut() -> None:
    whole = "<think>hm</think>\n\nIt rains."
    for place in range(len(whole) + 1):
        events = events_of(decoder(), text(whole[:place]), text(whole[place:]), turn_ended())
        check_events(events)
        assert lines_of(events) == ["thought hm", "text It rains.", "stop"]


def test_a_notice_is_not_the_models() -> None:
    run = decoder()
    events = events_of(run, text("You are out of fast requests.", is_notice=True))
    assert not run.has_seen_output
    events += events_of(run, text("Hi"), turn_ended())
    check_events(events)
    assert lines_of(events) == ["noted cursor.notice", "text Hi", "stop"]


def test_calls_wait_until_they_are_settled() -> None:
    run = decoder()
    events = events_of(run, text("Looking."), call(1, city="Rome"), call(2, city="Oslo"))
    assert run.is_waiting
    assert [made.id for made in run.calls] == ["call1", "call2"]
    events += run.end_calls()
    check_events(events)
    assert lines_of(events) == ["text Looking.", CALL_1, CALL_2, "tool_calls"]
    assert run.is_over
    assert not run.is_waiting
    assert not run.is_ended
    assert run.end_calls() == []


def test_results_go_back_to_their_execs_and_the_next_answer_begins() -> None:
    run = decoder()
    events_of(run, call(1, city="Rome"), call(2, city="Oslo"))
    run.end_calls()
    reply = run.resume(results("call2", "call1"))
    sent = [read(data) for data in reply.send]
    assert [one.exec_client_message.id for one in sent[::2]] == [1, 2]
    assert sent[0].exec_client_message.mcp_result.success.content[0].text.text == "sunny"
    assert [one.exec_client_control_message.stream_close.id for one in sent[1::2]] == [1, 2]
    events = reply.events + events_of(run, text("Sunny."), turn_ended())
    check_events(events)
    assert lines_of(events) == ["text Sunny.", "stop"]
    assert run.resume({}).send == []


def test_a_call_without_a_result_is_not_left_open() -> None:
    run = decoder()
    events_of(run, call(1), call(2))
    run.end_calls()
    sent = [read(data).exec_client_message.mcp_result.success for data in run.resume(results("call1")).send[::2]]
    assert [one.is_error for one in sent] == [False, True]


def test_what_comes_late_is_the_next_answers() -> None:
    run = decoder()
    first = events_of(run, call(1, city="Rome")) + run.end_calls()
    assert events_of(run, text("And "), call(2, city="Oslo"), call(2, city="Oslo"), text("more.")) == []
    reply = run.resume(results("call1"))
    second = reply.events + run.end_calls()
    check_events(second)
    assert lines_of(first) == [CALL_1, "tool_calls"]
    assert lines_of(second) == ["text And ", CALL_2, "text more.", "tool_calls"]
    assert [read(data).exec_client_message.id for data in reply.send[::2]] == [1]
    assert [read(data).exec_client_message.id for data in run.resume(results("call2")).send[::2]] == [2]


def test_one_call_at_a_time_if_the_client_wants_it_so() -> None:
    run = decoder(is_parallel=False)
    events_of(run, announced("call1"), announced("call2"))
    assert run.expects_more
    first = events_of(run, call(1, city="Rome"))
    assert not run.expects_more
    first += events_of(run, call(2, city="Oslo"), text("x")) + run.end_calls()
    second = run.resume(results("call1")).events + run.end_calls()
    third = run.resume(results("call2")).events + events_of(run, turn_ended())
    assert [lines_of(events) for events in (first, second)] == [
        [CALL_1, "tool_calls"],
        [CALL_2, "text x", "tool_calls"],
    ]
    for events in (first, second):
        check_events(events)
    assert third[1:] == []
    assert lines_of(run.end(None)) == ["stop"]


def test_housekeeping_is_answered_while_the_run_is_parked() -> None:
    run = decoder(blobs={b"a": b"1"})
    events_of(run, call(1))
    run.end_calls()
    replies = [
        run.receive(data)
        for data in (
            get_blob(4, b"a"),
            exec(9, request_context_args=agent.RequestContextArgs()),
            query(5, web_search_request_query=agent.Opaque()),
        )
    ]
    assert [len(reply.send) for reply in replies] == [1, 2, 1]
    assert all(not reply.events for reply in replies)
    assert read(replies[0].send[0]).kv_client_message.get_blob_result.blob_data == b"1"


def test_an_exec_that_is_said_twice_is_done_once() -> None:
    run = decoder()
    events = events_of(run, call(1, city="Rome"), call(1, city="Rome")) + run.end_calls()
    assert lines_of(events) == [CALL_1, "tool_calls"]


def test_H015_what_is_shown_of_a_call_beforehand_is_not_reported() -> None:
    run = decoder()
    partial = agent.PartialToolCallUpdate(call_id="call1", args_text_delta='{"city":"Rome"}')
    events = events_of(run, announced("call1"), update(partial_tool_call=partial))
    assert events == []
    assert run.expects_more
    events = events_of(run, call(1, city="Rome"), update(partial_tool_call=partial))
    assert not run.expects_more
    events += events_of(run, completed("call1")) + run.end_calls()
    assert lines_of(events) == [CALL_1, "tool_calls"]


def test_ids_are_made_legal_and_unique() -> None:
    run = decoder()
    events = events_of(
        run, call(1, "a\nfc_b"), call(2, "a"), call(3, "a|b"), exec(4, mcp_args=agent.McpArgs(name="weather"))
    )
    ids = [made.id for made in run.calls]
    assert ids[:2] == ["a", "a-2"]
    assert ids[2].startswith("a_b_")
    assert ids[3] == "made_1"
    check_events(events + run.end_calls())
    assert len(run.resume(results(*ids)).send) == 8


def test_numbers_are_whole_again() -> None:
    run = decoder()
    events = events_of(run, call(1, line=3, half=0.5, deep={"list": [1, None, {"x": True}]})) + run.end_calls()
    check_events(events)
    assert run.calls[0].args is not None
    assert json.loads(run.calls[0].raw) == {"line": 3, "half": 0.5, "deep": {"list": [1, None, {"x": True}]}}
    assert '"line":3' in run.calls[0].raw.replace("3.0", "wrong")


def test_an_unknown_tool_is_not_found() -> None:
    run = decoder()
    reply = run.receive(call(1, name="wether"))
    missing = read(reply.send[0]).exec_client_message.mcp_result.tool_not_found
    assert (missing.name, list(missing.available_tools)) == ("wether", ["weather"])
    assert len(reply.send) == 2
    assert lines_of(reply.events) == ["noted call.name"]
    assert not run.is_waiting


def test_a_built_in_exec_becomes_a_call_of_the_clients_tool() -> None:
    run = decoder([WEATHER, BASH])
    events = events_of(run, exec(1, shell_args=agent.ShellArgs(command="ls", tool_call_id="t1"))) + run.end_calls()
    check_events(events)
    assert [(made.id, made.name) for made in run.calls] == [("t1", "bash")]
    sent = run.resume(results("t1")).send
    assert read(sent[0]).exec_client_message.shell_result.success.stdout == "sunny"


def test_H168_an_exec_without_a_tool_is_declined_and_the_tools_are_named() -> None:
    run = decoder()
    reply = run.receive(exec(1, computer_use_args=agent.ComputerUseArgs()))
    assert "weather" in read(reply.send[0]).exec_client_message.computer_use_result.error.error
    assert lines_of(reply.events) == ["noted cursor.exec"]


def test_local_execs_are_for_clients_without_tools() -> None:
    local = frozenset({"read"})
    run = decoder([], local=local)
    reply = run.receive(exec(3, read_args=agent.ReadArgs(path="a")))
    assert [one.kind for one in reply.local] == ["read"]
    assert [read(data).exec_client_control_message.heartbeat.id for data in run.exec_heartbeats()] == [3]
    run.finish_local(reply.local[0])
    assert run.exec_heartbeats() == []
    assert decoder([WEATHER], local=local).receive(exec(3, read_args=agent.ReadArgs(path="a"))).local == []


def test_heartbeats_for_all_that_waits() -> None:
    run = decoder()
    events_of(run, call(1), call(2))
    run.end_calls()
    events_of(run, call(3), abort(2))
    assert [read(data).exec_client_control_message.heartbeat.id for data in run.exec_heartbeats()] == [1, 3]


def test_an_aborted_call_stays_reported_and_its_result_is_dropped() -> None:
    run = decoder()
    events = events_of(run, call(1, city="Rome"), abort(1), call(2, city="Oslo")) + run.end_calls()
    assert lines_of(events) == [CALL_1, CALL_2, "tool_calls"]
    sent = run.resume(results("call1", "call2")).send
    assert [read(data).exec_client_message.id for data in sent[::2]] == [2]


def test_an_aborted_call_that_was_not_reported_never_is() -> None:
    run = decoder()
    events_of(run, call(1))
    run.end_calls()
    events_of(run, call(2), text("after"), abort(2))
    events = run.resume(results("call1")).events + run.end(None)
    assert lines_of(events) == ["text after", "noted cursor.turn_end", "stop"]


def test_an_aborted_local_exec_is_to_be_stopped() -> None:
    run = decoder([], local=frozenset({"read"}))
    run.receive(exec(3, read_args=agent.ReadArgs(path="a")))
    assert run.receive(abort(3)).aborted == [3]
    assert run.receive(abort(3)).aborted == []


def test_a_sign_of_life_is_no_progress() -> None:
    run = decoder()
    events_of(run, heartbeat(), b"", update())
    assert run.progress == 0
    events_of(run, get_blob(1, b"x"), text("a"), checkpoint(3), announced("c"), call(1))
    assert run.progress == 5


def test_only_events_of_the_model_count_as_output() -> None:
    run = decoder()
    events_of(run, heartbeat(), get_blob(1, b"x"), checkpoint(5), text(""))
    events_of(run, exec(1, request_context_args=agent.RequestContextArgs()))
    assert not run.has_seen_output
    events_of(run, announced("c"))
    assert run.has_seen_output


def test_usage_of_a_parked_answer_and_of_the_last() -> None:
    run = decoder()
    events = events_of(run, tokens(7), tokens(-5), checkpoint(1000), call(1)) + run.end_calls()
    assert finished(events).usage == Usage(input=1000, output=7)
    run.resume(results("call1"))
    counts = {"input_tokens": 1500, "output_tokens": 10, "cache_read_tokens": 900, "reasoning_tokens": 99}
    ending = finished(events_of(run, tokens(3), text("x"), turn_ended(**counts)))
    assert ending.usage == Usage(input=1500, output=3, cached=900, reasoning=3)
    assert ending.extra == {"cursor": {"context_used": 1000, "context_limit": 200_000}}


def test_the_model_that_was_chosen_is_reported() -> None:
    routed = update(routed_model=agent.RoutedModelUpdate(display_name="Opus"))
    assert finished(events_of(decoder(), routed, text("x"), turn_ended())).extra == {"cursor": {"routed_model": "Opus"}}


def assistant(words: str) -> bytes:
    return json.dumps({"role": "assistant", "content": [{"type": "text", "text": words}]}).encode()


def test_text_that_came_only_as_a_blob_is_sent() -> None:
    events = events_of(decoder(), set_blob(1, b"i", assistant("<think>hm</think>Hi")), turn_ended())
    check_events(events)
    assert lines_of(events) == ["thought hm", "text Hi", "stop"]


def test_text_that_came_only_as_a_blob_may_come_behind_the_end() -> None:
    run = decoder()
    assert events_of(run, turn_ended(input_tokens=4)) == []
    assert not run.is_over
    events = events_of(run, set_blob(1, b"i", assistant("Hi")))
    check_events(events)
    assert lines_of(events) == ["text Hi", "stop"]
    assert finished(events).usage == Usage(input=4)


def test_text_of_which_only_some_came_is_made_whole_and_never_said_twice() -> None:
    run = decoder()
    assert lines_of(events_of(run, text("He"), set_blob(1, b"i", assistant("Hello")), turn_ended())) == [
        "text He",
        "text llo",
        "stop",
    ]
    run = decoder()
    assert lines_of(events_of(run, text("Hello"), set_blob(1, b"i", assistant("Hello")), turn_ended())) == [
        "text Hello",
        "stop",
    ]
    run = decoder()
    events_of(run, text("Look."), call(1))
    run.end_calls()
    run.resume(results("call1"))
    events_of(run, set_blob(1, b"i", assistant("Look.")), turn_ended())
    assert lines_of(run.end(None)) == ["stop"]


def test_text_that_came_only_as_a_blob_stands_before_the_call_that_followed_it() -> None:
    run = decoder()
    events = events_of(run, set_blob(1, b"i", assistant("Look.")), call(1)) + run.end_calls()
    check_events(events)
    assert lines_of(events) == ["text Look.", "call call1 weather {}", "tool_calls"]
    run.resume(results("call1"))
    everything = assistant("Look.Sunny.")  # the server leaves all that was said in the run
    assert lines_of(events_of(run, set_blob(2, b"j", everything), turn_ended())) == ["text Sunny.", "stop"]


def test_text_that_came_only_as_a_blob_behind_the_call_is_sent_before_the_answer_ends() -> None:
    run = decoder()
    events_of(run, call(1), set_blob(1, b"i", assistant("Look.")))
    assert lines_of(run.end_calls()) == ["text Look.", "tool_calls"]


@pytest.mark.parametrize("has_streamed", [False, True])
def test_an_answer_that_repeats_an_earlier_text_is_sent(has_streamed: bool) -> None:
    run = decoder()
    first = [text("Done.")] if has_streamed else []
    events = events_of(run, *first, set_blob(1, b"i", assistant("Done.")), call(1, "call1")) + run.end_calls()
    assert lines_of(events) == ["text Done.", "call call1 weather {}", "tool_calls"]
    run.resume(results("call1"))
    events = events_of(run, set_blob(2, b"i", assistant("Done.")), turn_ended()) + run.end(None)
    assert lines_of(events) == ["text Done.", "stop"]


def test_an_answer_that_repeats_a_text_of_the_history_is_sent() -> None:
    run = decoder(blobs={b"h": assistant("Done.")})
    events = events_of(run, set_blob(1, b"i", assistant("Done.")), turn_ended()) + run.end(None)
    check_events(events)
    assert lines_of(events) == ["text Done.", "stop"]


def test_a_text_that_comes_again_beside_another_is_not_sent() -> None:
    run = decoder(blobs={b"h": assistant("Done.")})
    events = events_of(run, set_blob(1, b"i", assistant("Done.")), text("More."), turn_ended())
    assert lines_of(events) == ["text More.", "stop"]


def test_steps_of_a_run_without_streamed_text_may_repeat_each_other() -> None:
    run = decoder()
    for number in (1, 2, 3):
        events = (
            events_of(run, set_blob(number, b"i", assistant("Looking.")), call(number, f"call{number}"))
            + run.end_calls()
        )
        assert lines_of(events) == ["text Looking.", f"call call{number} weather {{}}", "tool_calls"]
        run.resume(results(f"call{number}"))


def test_a_message_with_another_call_repeats_a_text_on_purpose() -> None:
    run = decoder()
    for number in (1, 2):
        content = json.dumps(
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool-call", "toolCallId": f"call{number}", "toolName": "weather", "args": {}},
                ],
            }
        ).encode()
        first = [text("Looking.")] if number == 1 else []
        events = events_of(run, *first, set_blob(number, bytes([number]), content), call(number, f"call{number}"))
        events += events_of(run, set_blob(9, bytes([number]), content)) + run.end_calls()  # again, behind the call
        assert lines_of(events) == ["text Looking.", f"call call{number} weather {{}}", "tool_calls"]
        run.resume(results(f"call{number}"))


def test_texts_that_came_only_as_blobs_between_two_requests_are_the_next_answers() -> None:
    run = decoder()
    events_of(run, call(1))
    run.end_calls()
    assert events_of(run, set_blob(1, b"i", assistant("Look."))) == []
    run.resume(results("call1"))
    events = events_of(run, set_blob(2, b"j", assistant("Sunny.")), turn_ended())
    assert lines_of(events) == ["text Look.", "text Sunny.", "stop"]


def test_text_around_an_exec_that_was_declined_is_sent_once() -> None:
    run = decoder()
    diagnostics = exec(1, diagnostics_args=agent.DiagnosticsArgs())
    blobs = [set_blob(1, b"i", assistant("One.")), set_blob(2, b"j", assistant("Two."))]
    events = events_of(run, text("One."), diagnostics, blobs[0], text("Two."), blobs[1], turn_ended())
    check_events(events)
    assert lines_of(events) == ["text One.", "noted cursor.exec", "text Two.", "stop"]


def test_what_the_model_is_refused_is_counted() -> None:
    run = decoder()
    declined = [
        exec(1, diagnostics_args=agent.DiagnosticsArgs()),
        call(2, name="fly"),
        exec(3, mcp_allowlist_precheck_args=agent.McpAllowlistPrecheckArgs(tool_name="fly")),
        query(4, web_search_request_query=agent.Opaque()),
    ]
    others = [
        call(5),
        text("x"),
        exec(6, request_context_args=agent.RequestContextArgs()),
        exec(7, mcp_allowlist_precheck_args=agent.McpAllowlistPrecheckArgs(tool_name="weather")),
    ]
    assert [run.receive(message).declined for message in declined] == [1] * 4
    assert [run.receive(message).declined for message in others] == [0] * 4
    assert run.receive(checkpoint(500)).used == 500


def test_a_tool_that_is_not_offered_now_is_unknown_though_the_history_speaks_of_it() -> None:
    opened = msgspec.structs.replace(opening([WEATHER, BASH]), tools=(BASH,))
    run = RunDecoder(RunContext(model="m", opening=opened, new_call_id=str, fits=fits))
    reply = run.receive(call(1))
    missing = read(reply.send[0]).exec_client_message.mcp_result.tool_not_found
    assert (missing.name, list(missing.available_tools)) == ("weather", ["bash"])
    assert run.calls == []
    precheck = agent.McpAllowlistPrecheckArgs(tool_name="weather")
    reply = run.receive(exec(2, mcp_allowlist_precheck_args=precheck))
    assert not read(reply.send[0]).exec_client_message.mcp_allowlist_precheck_result.allowlisted


def test_text_and_an_end_in_order_without_the_turns_end_is_an_answer_with_a_loss() -> None:
    run = decoder()
    events = events_of(run, text("Hello"), checkpoint(3)) + run.end(None)
    check_events(events)
    assert lines_of(events) == ["text Hello", "noted cursor.turn_end", "stop"]
    assert finished(events).choices[0].raw_reason == "unended"
    run = decoder()
    events = events_of(run, set_blob(1, b"i", assistant("Hello"))) + run.end(None)
    assert lines_of(events) == ["text Hello", "noted cursor.turn_end", "stop"]


def test_an_end_without_the_turns_end_and_without_text_is_an_error() -> None:
    events = events_of(run := decoder(), thinking("hm")) + run.end(None)
    check_events(events)
    assert lines_of(events) == ["thought hm", "failed upstream_cut"]
    other = decoder().end(None)[-1]
    assert isinstance(other, Failed)
    assert isinstance(other.error, UpstreamError)
    assert other.error.retryable
    events = events_of(run := decoder(), text("Hel")) + run.end(ConnectFault("internal", "boom"))
    assert lines_of(events) == ["text Hel", "failed upstream_error"]


def test_heartbeats_are_counted_from_the_last_progress() -> None:
    run = decoder()
    events_of(run, heartbeat(), heartbeat(), tokens(1), heartbeat())
    assert run.heartbeats == 1
    events_of(run, call(1), heartbeat())
    run.end_calls()
    events_of(run, heartbeat())
    run.resume(results("call1"))
    assert run.heartbeats == 0


def test_a_stalled_run_is_the_text_of_its_blobs() -> None:
    run = decoder()
    events = events_of(run, set_blob(1, b"i", assistant("Hello")), heartbeat()) + run.end_stalled()
    check_events(events)
    assert lines_of(events) == ["text Hello", "noted cursor.turn_end", "stop"]
    assert run.end_stalled() == []


@pytest.mark.parametrize("content", [(), (text("Hel"),), (thinking("hm"),)])
def test_a_stalled_run_without_a_blob_is_not_over(content: tuple[bytes, ...]) -> None:
    run = decoder()
    events_of(run, *content, heartbeat())
    assert run.end_stalled() == []
    assert not run.is_over


def test_a_stalled_run_is_never_the_message_that_came_before_its_results() -> None:
    run = decoder()
    content = [{"type": "text", "text": "Look."}, {"type": "tool-call", "toolCallId": "call1", "toolName": "weather"}]
    message = json.dumps({"role": "assistant", "content": content}).encode()
    events_of(run, text("Look."), set_blob(1, b"i", message), call(1, "call1"))
    run.end_calls()
    run.resume(results("call1"))
    events_of(run, set_blob(2, b"j", message), heartbeat())
    assert run.end_stalled() == []
    assert not run.answer.has_text


def test_an_end_with_a_fault_says_what_it_was() -> None:
    events = decoder().end(ConnectFault("unauthenticated", "who are you"))
    assert isinstance(events[-1], Failed)
    assert events[-1].error.status == 401


@pytest.mark.parametrize("fault", [None, ConnectFault("internal", "boom")])
def test_calls_that_are_out_are_an_answer_whatever_becomes_of_the_stream(fault: ConnectFault | None) -> None:
    run = decoder()
    assert lines_of(events_of(run, call(1, city="Rome")) + run.end(fault)) == [CALL_1, "tool_calls"]
    assert run.is_ended
    run = decoder()
    assert lines_of(events_of(run, call(1, city="Rome")) + run.fail(UpstreamError("gone"))) == [CALL_1, "tool_calls"]
    assert lines_of(events_of(run, call(2))) == []


def test_a_run_that_ends_while_it_is_parked_says_so_when_it_is_needed() -> None:
    run = decoder()
    events_of(run, call(1))
    run.end_calls()
    assert events_of(run, text("late")) == []
    assert run.end(ConnectFault("unavailable", "bye")) == []
    assert run.is_ended
    events = run.resume(results("call1")).events
    check_events(events)
    assert lines_of(events)[0] == "text late"
    assert isinstance(events[-1], Failed)


def test_a_turn_that_ends_over_open_calls() -> None:
    run = decoder()
    assert lines_of(events_of(run, call(1, city="Rome"), turn_ended())) == [CALL_1, "tool_calls"]
    assert run.is_ended
    late = run.receive(call(2))
    assert read(late.send[0]).exec_client_message.mcp_result.HasField("rejected")
    assert lines_of(run.resume(results("call1")).events) == ["failed upstream_cut"]


def test_nothing_is_reported_behind_the_end_of_an_answer() -> None:
    run = decoder(is_parallel=False)
    events_of(run, call(1), call(2, city="Oslo"), turn_ended(), text("x"))
    run.end_calls()
    events = run.resume(results("call1")).events
    check_events(events)
    assert lines_of(events) == [CALL_2, "tool_calls"]


def test_what_cannot_be_read_fails_the_answer() -> None:
    run = decoder()
    events = events_of(run, text("a"), b"\xff\xff\xff", text("b"))
    check_events(events)
    assert lines_of(events) == ["text a", "failed upstream_garbage"]
    assert run.is_ended
    parked = decoder()
    events_of(parked, call(1))
    parked.end_calls()
    assert events_of(parked, b"\xff") == []
    assert parked.is_ended
    assert lines_of(parked.resume(results("call1")).events) == ["failed upstream_garbage"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MAX_BYTES", 5000)
    run = decoder()
    events_of(run, call(1))
    run.end_calls()
    events_of(run, *[text("x" * 100)] * 20)
    assert run.is_ended
    assert lines_of(run.resume(results("call1")).events)[-1] == "failed upstream_garbage"


def test_calls_are_bounded() -> None:
    run = decoder()
    replies = [run.receive(call(number)) for number in range(1, MAX_CALLS + 2)]
    assert len(run.calls) == MAX_CALLS
    assert read(replies[-1].send[0]).exec_client_message.mcp_result.HasField("rejected")
    assert lines_of(replies[-1].events) == ["noted call.number"]


def test_a_summary_by_the_server_is_noted() -> None:
    summary = update(summary_completed=agent.SummaryCompletedUpdate())
    assert lines_of(events_of(decoder(), summary, text("x"), turn_ended())) == [
        "noted cursor.summary",
        "text x",
        "stop",
    ]


MESSAGES: list[bytes] = [
    text("a"),
    text("<think>b</think>c"),
    text("<thi"),
    text("note", is_notice=True),
    thinking("d"),
    thought(),
    tokens(3),
    checkpoint(9),
    heartbeat(),
    announced("call1"),
    completed("call1"),
    call(1, city="Rome"),
    call(2, city="Oslo"),
    call(3, name="nobody"),
    exec(4, shell_args=agent.ShellArgs(command="ls", tool_call_id="t4")),
    exec(5, computer_use_args=agent.ComputerUseArgs()),
    exec(6),
    exec(7, request_context_args=agent.RequestContextArgs()),
    exec(8, shell_stream_args=agent.ShellArgs(command="ls")),
    abort(1),
    abort(4),
    get_blob(1, b"a"),
    set_blob(2, b"b", assistant("blob")),
    query(3, ask_question_interaction_query=agent.Opaque()),
    turn_ended(output_tokens=3),
    message(),
    b"\xff",
]
ACTIONS = st.lists(st.sampled_from([*MESSAGES, "settle", "give", "end", "cut"]), max_size=30)


class ScriptedRun:
    """A run that is played by any script; answers are whole, and what was asked and answered is counted."""

    def __init__(self, **changes: Any) -> None:
        self.run = decoder([WEATHER, BASH], **changes)
        self.answers: list[list[Event]] = [[]]
        self.sent: list[agent.AgentClientMessage] = []
        self.call_ids: list[str] = []

    def take(self, reply: DecoderReply) -> None:
        self.answers[-1] += reply.events
        self.sent += [read(data) for data in reply.send]

    def play(self, action: bytes | str) -> None:
        match action:
            case bytes():
                self.take(self.run.receive(action))
            case "settle":
                self.answers[-1] += self.run.end_calls()
            case "give" if self.run.is_over and self.run.calls:
                self.give()
            case "end":
                self.answers[-1] += self.run.end(None)
            case "cut":
                self.answers[-1] += self.run.fail(UpstreamError("cut"))

    def give(self) -> None:
        self.call_ids += [made.id for made in self.run.calls]
        self.answers.append([])
        self.take(self.run.resume(results(*(made.id for made in self.run.calls))))

    def finish(self) -> None:
        """Until nothing is open any more."""
        self.answers[-1] += self.run.end_calls()
        while self.run.is_over and self.run.calls and not self.run.is_ended:
            self.give()
            self.answers[-1] += self.run.end_calls()
        self.answers[-1] += self.run.end(None)

    def answered(self) -> list[tuple[str, int]]:
        """What each message is the answer to; an exec is answered when it is closed."""
        found: list[tuple[str, int]] = []
        for one in self.sent:
            match one.WhichOneof("message"):
                case "kv_client_message":
                    found.append(("kv", one.kv_client_message.id))
                case "interaction_response":
                    found.append(("interaction", one.interaction_response.id))
                case "exec_client_control_message" if one.exec_client_control_message.HasField("stream_close"):
                    found.append(("exec", one.exec_client_control_message.stream_close.id))
        return found


@examples(100)
@given(ACTIONS, st.booleans())
def test_in_any_order_the_events_keep_their_contract(actions: list[bytes | str], is_parallel: bool) -> None:
    check_any_order(actions, is_parallel)


def check_any_order(actions: list[bytes | str], is_parallel: bool) -> None:
    scripted = ScriptedRun(is_parallel=is_parallel)
    for action in actions:
        scripted.play(action)
    scripted.finish()
    assert scripted.run.is_over
    for events in scripted.answers:
        check_events(events)
        calls = sum(line.startswith("call ") for line in lines_of(events))
        assert is_parallel or calls <= 1
    assert len(set(scripted.call_ids)) == len(scripted.call_ids)


ASKING = [data for data in MESSAGES if data not in (b"\xff", turn_ended(output_tokens=3), abort(1), abort(4))]
ORDERS = st.lists(st.sampled_from(range(len(ASKING))), unique=True)


@examples(50)
@given(ORDERS, st.integers(0, 2**30), st.booleans())
def test_everything_that_needs_an_answer_gets_exactly_one(order: list[int], rests: int, is_parallel: bool) -> None:
    """Each exec is closed once, each blob and query answered once, whenever the client's results come."""
    scripted = ScriptedRun(is_parallel=is_parallel)
    requested: list[tuple[str, int]] = []
    for place, number in enumerate(order):
        message = agent.AgentServerMessage.FromString(ASKING[number])
        member = message.WhichOneof("message")
        if member in ("exec_server_message", "kv_server_message", "interaction_query"):
            requested.append((member.split("_")[0], getattr(message, member).id))
        scripted.play(ASKING[number])
        if rests >> place & 1:
            scripted.play("settle")
            scripted.play("give")
    scripted.finish()
    assert sorted(scripted.answered()) == sorted(requested)


@pytest.mark.slow
@examples(1000)
@given(ACTIONS, st.booleans())
def test_in_very_many_orders(actions: list[bytes | str], is_parallel: bool) -> None:
    check_any_order(actions, is_parallel)


@examples(100)
@given(st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    scripted = ScriptedRun()
    for piece in pieces:
        scripted.play(piece)
    scripted.finish()
    for events in scripted.answers:
        check_events(events)
    assert not any(isinstance(event, Noted) and event.index is not None for event in scripted.answers[0])
