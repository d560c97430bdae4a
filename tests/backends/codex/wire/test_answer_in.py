"""Answers of Codex: every recorded session gives the events that are written down here, and what no recording shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

from tests.backends.codex.wire.recorded import VERSIONS, Session, cases, records, shown
from tests.backends.event_contract import check_events
from toolwire.backends.codex.wire.answer_in import CodexTurnDecoder
from toolwire.backends.codex.wire.names import CodexToolNames
from toolwire.errors import UpstreamError
from toolwire.events import Event, Failed, Finished, Noted, PartDelta, PartEnded, Started
from toolwire.types import Loss, Reasoning, Text, ToolCall
from toolwire.wire.exact_json import BadJson, decode

HELLO = ["text Hello world.", "stop 100+20"]
COUNTED = "text " + "".join(f"h{number} " for number in range(30))
SPLIT = (
    'text I will look that up.\n<tool_call>{"type":"tool_call","call_id":"call_abc123","name":"localSearch",'
    '"arguments":"{\\"query\\":\\"a </tool_call> b\\"}"}</tool_call>\nDone.'
)
BLOCKS = "".join(
    f'<tool_call>{{"call_id":"c{n}","name":"{name}","arguments":"{{}}"}}</tool_call>'
    for n, name in ((1, "a"), (2, "b"))
)
PARIS, ROME = ('call call_dyn1 get_weather {"city":"Paris"}', 'call call_dyn2 get_weather {"city":"Rome"}')
CALLED = [["text Let me check.", PARIS, "tool_calls"], ["text It is sunny.", "stop 200+40"]]
SHELL = [["text shell done", "stop 200+40"]]

# What both versions do alike.
SAME: dict[str, list[list[str]]] = {
    "01_initialize": [],
    "02_plain_turn": [HELLO],
    "03_tool_call_split": [[SPLIT, "stop 100+20"]],
    "04_tool_call_two_blocks": [[f"text {BLOCKS}", "stop 100+20"]],
    "05_reasoning": [["thought Thinking hard", "text ok", "stop 100+20"]],
    "10_error_500": [["failed 500 upstream_error"]],
    "11_error_429": [["failed 429 rate_limited"]],
    "13_error_401": [["failed 401 authentication_failed"]],
    "14_error_400": [["failed 400 upstream_error"]],
    "15_stream_cut": [["failed 502 upstream_cut"]],
    "16_response_failed": [["failed 502 upstream_error"]],
    "17_rate_limit_in_stream": [["failed 429 rate_limited"]],
    "18_context_exceeded": [["failed 400 context_length_exceeded"]],
    "20_unknown_tool": [["text ok", "stop 200+40"]],
    "21_missing_key": [["failed 401 authentication_failed"]],
    "30_interrupt": [["failed 502 interrupted"], HELLO],
    "31_kill_mid_turn": [["failed 502 upstream_cut"]],
    "32_sigterm_mid_turn": [["failed 502 upstream_cut"]],
    "33_two_threads": [[COUNTED, "stop 100+20"], [COUNTED, "stop 100+20"]],
    "35_output_schema": [HELLO],
    "36_image_input": [HELLO],
    "37_shell_approval": SHELL,
    "38_shell_disabled": SHELL,
    "62_shell_never_readonly": SHELL,
}
EXPECTED: dict[str, dict[str, list[list[str]]]] = {
    "0.89.0": SAME
    | {
        "12_error_429_quota": [["failed 429 rate_limited"]],  # this version does not say that it is the quota
        "19_incomplete": [["text partial", "failed 502 upstream_cut"]],  # it asks again, and would say it all twice
        "34_two_turns_same_thread": [[COUNTED, "text Hello world.", "stop 200+40"]],
        "47_dynamic_tools_ignored": [["text Let me check.", "text It is sunny.", "stop 200+40"]],
        "50_resume_history_empty_turn": [["stop"], HELLO],
        "64_login_api_key": [],
    },
    "0.166.0": SAME
    | {
        "12_error_429_quota": [["failed 429 insufficient_quota"]],
        "19_incomplete": [["text partial", "length 100+20"]],
        "34_two_turns_same_thread": [HELLO],
        "40_dynamic_tool": CALLED,
        "41_dynamic_tool_parallel": [["text Let me check.", PARIS, ROME, "tool_calls"], CALLED[1]],
        "42_dynamic_tool_namespace": CALLED,
        "43_dynamic_tool_failure": CALLED,
        "44_dynamic_tool_rpc_error": CALLED,
        "45_dynamic_tool_bad_args": [["text ok", "stop 200+40"]],
        "46_dynamic_tool_interrupt": [["text Let me check.", PARIS, ROME, "tool_calls"], HELLO],
        "47_dynamic_tool_not_experimental": [],
        "48_dynamic_tool_bad_names": [],
        "49_dynamic_tool_answer_late": CALLED,
        "50_inject_items_then_empty_turn": [["text It is sunny.", "stop 100+20"]],
        "51_inject_items_then_user_turn": [HELLO],
        "52_inject_bad_items": [HELLO],
        "53_turn_tool_output": [HELLO],
        "54_dynamic_parallel_raw_events": [
            ["text Let me check.", PARIS, ROME, "tool_calls 100+20"],
            ["text It is sunny.", "stop 100+20"],
        ],
        "55_dynamic_schema_fidelity": [HELLO],
        "56_dynamic_defer": [],
        "58_thread_lifecycle": [],
        "59_opt_out": [HELLO],
        "60_turn_steer": [["text Hello world.", "text h0 ", "stop 100+20"]],
        "61_environments_empty_shell": SHELL,
        "63_inject_orphan_call": [HELLO],
        "64_login_api_key": [HELLO],
    },
}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_session_is_in_the_table(version: str) -> None:
    assert cases(version) == sorted(EXPECTED[version])


@pytest.mark.parametrize(("version", "case"), [(version, case) for version in VERSIONS for case in EXPECTED[version]])
def test_a_recorded_session_gives_its_answers(version: str, case: str) -> None:
    assert [shown(answer) for answer in Session(version, case).answers] == EXPECTED[version][case]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_approval_is_declined_as_the_recorded_client_did(version: str) -> None:
    ((asked, reply),) = Session(version, "37_shell_approval").replies
    assert asked.method == "item/commandExecution/requestApproval"
    assert reply == {"id": 0, "result": {"decision": "decline"}}


def test_calls_are_held_with_the_servers_own_ids() -> None:
    session = Session("0.166.0", "54_dynamic_parallel_raw_events")
    assert all(reply is None for _, reply in session.replies)
    assert {call.id: call.request_id for call in session.decoders[0].calls.values()} == {"call_dyn1": 0, "call_dyn2": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_text_that_streams_leaves_at_once_delta_by_delta(version: str) -> None:
    (answer,) = Session(version, "02_plain_turn").answers
    assert [event.text for event in answer if isinstance(event, PartDelta)] == ["Hel", "lo", " wor", "ld", "."]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_retry_after_text_fails_in_place_of_saying_it_twice(version: str) -> None:
    (answer,) = Session(version, "15_stream_cut").answers
    assert [event.text for event in answer if isinstance(event, PartDelta)] == ["half"]
    assert isinstance(answer[-1], Failed)
    assert "cannot be taken back" in answer[-1].error.message


@pytest.mark.parametrize("version", VERSIONS)
def test_retries_before_the_first_word_are_not_the_clients_affair(version: str) -> None:
    (answer,) = Session(version, "10_error_500").answers
    assert sum(isinstance(event, Failed) for event in answer) == 1


THREAD, TURN = "t", "u"


def tell(decoder: CodexTurnDecoder, method: str, **params: Any) -> list[Event]:
    return decoder.notify(method, {"threadId": THREAD, "turnId": TURN, **params})


def raw(decoder: CodexTurnDecoder, **item: Any) -> list[Event]:
    return tell(decoder, "rawResponseItem/completed", item=item)


def raw_call(decoder: CodexTurnDecoder, call_id: str, name: str, arguments: str) -> list[Event]:
    return raw(decoder, type="function_call", call_id=call_id, name=name, arguments=arguments)


def ask(decoder: CodexTurnDecoder, id: int, call_id: str, tool: str, arguments: object) -> list[Event]:
    params = {"threadId": THREAD, "turnId": TURN, "callId": call_id, "tool": tool, "arguments": arguments}
    return decoder.call(id, params) or []


def decoder_of(*tools: str, turn: str = TURN) -> CodexTurnDecoder:
    return CodexTurnDecoder(THREAD, turn, model="m", names=CodexToolNames(tools))


def test_arguments_are_what_the_model_wrote_to_the_byte() -> None:
    decoder = decoder_of("f")
    events = raw_call(decoder, "c1", "f", '{ "a" : 1.50 }')
    assert ask(decoder, 0, "c1", "f", {"a": 1.5}) == []
    events += tell(decoder, "rawResponse/completed", usage={"inputTokens": 3, "outputTokens": 2})
    check_events(events)
    assert shown(events) == ['call c1 f { "a" : 1.50 }', "tool_calls 3+2"]
    assert decoder.is_over
    assert decoder.calls["c1"].request_id == 0


def test_calls_of_an_ended_response_are_sent_before_they_are_requested() -> None:
    decoder = decoder_of("f")
    events = raw_call(decoder, "c1", "f", "{}") + tell(decoder, "rawResponse/completed")
    assert shown(events) == ["call c1 f {}", "tool_calls"]
    assert ask(decoder, 7, "c1", "f", {}) == []
    assert decoder.calls["c1"].request_id == 7


def test_without_a_marker_the_answer_ends_when_no_more_calls_are_awaited() -> None:
    decoder = decoder_of("f", "g")
    assert not decoder.is_waiting
    assert decoder.end_calls() == []
    events = ask(decoder, 0, "c1", "f", {"a": 1})
    assert decoder.is_waiting
    events += decoder.end_calls()
    assert shown(events) == ['call c1 f {"a":1}', "tool_calls"]
    assert ask(decoder, 1, "c2", "g", {}) == []  # too late for this answer
    following, first = decoder.follow()
    assert following.is_waiting
    assert shown(first + following.end_calls()) == ["call c2 g {}", "tool_calls"]
    assert following.calls["c2"].request_id == 1


def test_a_count_of_tokens_says_that_no_call_will_follow() -> None:
    decoder = decoder_of("f")
    count = {"total": {"inputTokens": 3, "outputTokens": 2}, "last": {"inputTokens": 3, "outputTokens": 2}}
    assert tell(decoder, "thread/tokenUsage/updated", tokenUsage=count) == []
    events = raw_call(decoder, "c1", "f", "{}") + tell(decoder, "thread/tokenUsage/updated", tokenUsage=count)
    assert shown(events) == ["call c1 f {}", "tool_calls 3+2"]


def test_an_answer_that_follows_reads_on_in_the_same_turn() -> None:
    decoder = decoder_of("f")
    ask(decoder, 0, "c1", "f", {})
    decoder.end_calls()
    del decoder.calls["c1"]
    following, first = decoder.follow()
    assert first == []
    events = tell(following, "item/agentMessage/delta", itemId="i", delta="so")
    events += following.notify("turn/completed", {"threadId": THREAD, "turn": {"id": TURN, "status": "completed"}})
    assert shown(events) == ["text so", "stop"]


def test_calls_that_codex_answers_itself_are_losses() -> None:
    decoder = decoder_of("f")
    raw_call(decoder, "c1", "f", '{"a": ')
    raw(decoder, type="function_call_output", call_id="c1", output="failed to parse function arguments: EOF")
    raw_call(decoder, "c2", "nobody", "{}")
    raw(decoder, type="function_call_output", call_id="c2", output="unsupported call: nobody")
    raw_call(decoder, "c3", "shell", "{}")
    raw(decoder, type="function_call_output", call_id="c3", output="hi")
    assert tell(decoder, "rawResponse/completed") == []
    events = tell(decoder, "item/agentMessage/delta", itemId="i", delta="ok")
    assert isinstance(events[0], Started)
    losses = [event.note for event in events if isinstance(event, Noted) and isinstance(event.note, Loss)]
    assert [(loss.feature, loss.where) for loss in losses] == [
        ("call.arguments", "f"),
        ("call.name", "nobody"),
        ("call.own", "shell"),
    ]


def own_calls(decoder: CodexTurnDecoder, count: int, name: str, arguments: str, output: str) -> list[Event]:
    events: list[Event] = []
    for number in range(count):
        events += raw_call(decoder, f"c{number}", name, arguments)
        events += raw(decoder, type="function_call_output", call_id=f"c{number}", output=output)
    return events


@pytest.mark.parametrize(
    ("name", "arguments", "output", "most"),
    [("f", '{"a": ', "failed to parse", 5), ("nobody", "{}", "unsupported call", 5), ("update_plan", "{}", "ok", 50)],
)
def test_a_model_that_keeps_calling_where_no_tool_was_offered_ends_with_what_it_said(
    name: str, arguments: str, output: str, most: int
) -> None:
    decoder = decoder_of()
    assert own_calls(decoder, most, name, arguments, output) == []
    events = own_calls(decoder, 1, name, arguments, output)
    assert [line for line in shown(events) if not line.startswith("loss")] == [f"call c0 {name} {arguments}", "stop"]
    assert decoder.is_over
    assert decoder.calls == {}  # nobody waits for a result

    decoder = decoder_of()
    events = tell(decoder, "item/agentMessage/delta", itemId="i", delta="As far as I know, ")
    events += own_calls(decoder, most + 1, name, arguments, output)
    assert shown(events)[-2:] == ["text As far as I know, ", "stop"]


@pytest.mark.parametrize(
    ("said", "expected"), [("Well, ", ["text Well, ", "stop 1100+0"]), ("", ["failed 502 codex_stuck"])]
)
def test_where_codex_does_not_tell_its_own_calls_the_responses_are_counted(said: str, expected: list[str]) -> None:
    """A thread that was resumed has no raw items. A count that comes again is no response."""
    decoder = decoder_of()
    events = tell(decoder, "item/agentMessage/delta", itemId="i", delta=said)
    for number in range(1, 12):
        assert not decoder.is_over
        for _ in range(2):
            count = {"inputTokens": 100 * number}
            events += tell(
                decoder, "thread/tokenUsage/updated", tokenUsage={"total": count, "last": {"inputTokens": 100}}
            )
    assert decoder.is_over
    assert shown(events) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "output", "most"),
    [("f", '{"a": ', "failed to parse", 5), ("nobody", "{}", "unsupported call", 5), ("update_plan", "{}", "ok", 50)],
)
def test_a_model_that_never_gets_a_call_right_is_stopped(name: str, arguments: str, output: str, most: int) -> None:
    decoder = decoder_of("f")
    assert own_calls(decoder, most, name, arguments, output) == []
    events = own_calls(decoder, 1, name, arguments, output)
    assert shown(events)[-1] == "failed 502 codex_stuck"
    assert isinstance(events[-1], Failed)
    assert f'{most + 1} calls of the model itself, the last to "{name}"' in events[-1].error.message
    assert decoder.is_over


def test_broken_calls_beside_a_good_one_do_not_stop_the_answer() -> None:
    decoder = decoder_of("f")
    events = raw_call(decoder, "good", "f", "{}") + own_calls(decoder, 9, "f", "{", "failed to parse")
    events += tell(decoder, "rawResponse/completed")
    assert shown(events)[0] == "call good f {}"
    assert shown(events)[-1] == "tool_calls"


OFFLINE = {"message": "Reconnecting... waiting for network", "additionalDetails": "Connection failed"}


def test_a_provider_that_is_not_reached_fails_the_answer_before_and_after_the_first_word() -> None:
    silent = decoder_of()
    assert shown(tell(silent, "error", error=OFFLINE, willRetry=True)) == ["failed 502 upstream_unreachable"]
    spoken = decoder_of()
    events = tell(spoken, "item/agentMessage/delta", itemId="i", delta="x")
    events += tell(spoken, "error", error=OFFLINE, willRetry=True)
    assert shown(events) == ["failed 502 upstream_cut"]


def test_a_filtered_answer_is_a_refusal_with_its_text() -> None:
    decoder = decoder_of()
    events = tell(decoder, "item/agentMessage/delta", itemId="i", delta="partial")
    message = "stream disconnected before completion: Incomplete response returned, reason: content_filter"
    turn = {"id": TURN, "status": "failed", "error": {"message": message, "codexErrorInfo": "other"}}
    events += decoder.notify("turn/completed", {"threadId": THREAD, "turn": turn})
    assert shown(events) == ["text partial", "refused"]


def test_names_that_codex_would_refuse_come_back_as_the_clients() -> None:
    names = CodexToolNames(["mcp__files__read"])
    decoder = CodexTurnDecoder(THREAD, TURN, names=names)
    (call,) = [
        event for event in raw_call(decoder, "c", names.wire("mcp__files__read"), "{}") if isinstance(event, PartEnded)
    ]
    assert isinstance(call.part, ToolCall)
    assert (call.part.name, call.part.raw, call.part.args) == ("mcp__files__read", "{}", {})


def test_reasoning_waits_for_its_proof_and_goes_back_with_it() -> None:
    decoder = decoder_of()
    events = tell(decoder, "item/reasoning/summaryPartAdded", itemId="r", summaryIndex=0)
    events += tell(decoder, "item/reasoning/summaryTextDelta", itemId="r", summaryIndex=0, delta="one")
    events += tell(decoder, "item/reasoning/summaryTextDelta", itemId="r", summaryIndex=1, delta="two")
    events += tell(decoder, "item/completed", item={"type": "reasoning", "id": "r", "summary": ["one", "two"]})
    events += raw(decoder, type="reasoning", id="r", summary=[], encrypted_content="proof")
    parts = [event.part for event in events if isinstance(event, PartEnded)]
    assert parts == [
        Reasoning(text="one", item_id="r", is_summary=True, extra={"responses": {}}),
        Reasoning(text="two", item_id="r", is_summary=True, encrypted="proof", extra={"responses": {}}),
    ]


def test_reasoning_without_any_text_is_its_proof_alone() -> None:
    decoder = decoder_of()
    events = tell(decoder, "item/completed", item={"type": "reasoning", "id": "r", "summary": []})
    events += raw(decoder, type="reasoning", id="r", summary=[], encrypted_content="proof")
    (part,) = [event.part for event in events if isinstance(event, PartEnded)]
    assert isinstance(part, Reasoning)
    assert (part.text, part.encrypted) == ("", "proof")


def test_reasoning_that_was_not_streamed_is_sent_at_its_end() -> None:
    decoder = decoder_of()
    item = {"type": "reasoning", "id": "r", "summary": ["a", "b"], "content": ["c"]}
    events = tell(decoder, "item/completed", item=item)
    events += decoder.notify("turn/completed", {"threadId": THREAD, "turn": {"id": TURN, "status": "completed"}})
    assert shown(events) == ["thought a", "thought b", "thought c", "stop"]


def test_messages_of_other_threads_and_turns_are_passed_over() -> None:
    decoder = CodexTurnDecoder(THREAD)
    # What is put into a thread is told of under a turn id of its own, before the turn begins.
    assert raw_call(decoder, "c", "f", "{}") == []
    assert decoder.notify("turn/started", {"threadId": "another", "turn": {"id": "x"}}) == []
    decoder.notify("turn/started", {"threadId": THREAD, "turn": {"id": TURN}})
    assert decoder.turn_id == TURN
    for stray in ({"threadId": "another", "turnId": TURN}, {"threadId": THREAD, "turnId": "another"}, {}):
        assert decoder.notify("item/agentMessage/delta", {**stray, "itemId": "i", "delta": "x"}) == []
    assert tell(decoder, "codex/event/agent_message_delta", delta="x") == []
    assert decoder.call(0, {"threadId": "another", "callId": "c"}) is None


def test_nothing_follows_the_end() -> None:
    decoder = decoder_of()
    assert shown(decoder.cut()) == ["failed 502 upstream_cut"]
    assert tell(decoder, "item/agentMessage/delta", itemId="i", delta="x") == []
    assert decoder.cut() == []


def test_a_fault_that_was_reported_is_the_reason_when_the_program_ends() -> None:
    decoder = decoder_of()
    tell(
        decoder, "error", error={"message": "Quota exceeded.", "codexErrorInfo": "usageLimitExceeded"}, willRetry=False
    )
    assert shown(decoder.cut(UpstreamError("gone"))) == ["failed 429 insufficient_quota"]


def test_a_text_whose_end_has_more_than_its_deltas_is_whole() -> None:
    decoder = decoder_of()
    events = tell(decoder, "item/agentMessage/delta", itemId="i", delta="Hel")
    events += tell(decoder, "item/completed", item={"type": "agentMessage", "id": "i", "text": "Hello"})
    events += tell(decoder, "item/agentMessage/delta", itemId="i", delta="again")
    (part,) = [event.part for event in events if isinstance(event, PartEnded)]
    assert part == Text(text="Hello", item_id="i")


HOSTILE: list[object] = [None, 7, "x", [], {}, {"type": 7, "id": 7, "text": 7, "summary": "x", "arguments": 7}]


@pytest.mark.parametrize("value", HOSTILE)
def test_messages_of_the_wrong_shape_break_nothing(value: object) -> None:
    decoder = decoder_of("f")
    for method in ("item/started", "item/completed", "rawResponseItem/completed", "error", "rawResponse/completed"):
        members = ("item", "error", "usage")
        assert all(not isinstance(event, Finished) for event in tell(decoder, method, **dict.fromkeys(members, value)))
    for kind in ("agentMessage", "reasoning", "mcpToolCall", "function_call", "function_call_output"):
        item = {"type": kind, "id": value, "text": value, "summary": value, "call_id": value, "arguments": value}
        tell(decoder, "item/completed", item=item)
        tell(decoder, "rawResponseItem/completed", item=item)
    tell(decoder, "thread/tokenUsage/updated", tokenUsage=value)
    tell(decoder, "item/agentMessage/delta", itemId=value, delta=value)
    tell(decoder, "item/reasoning/summaryTextDelta", itemId=value, summaryIndex=value, delta=value)
    is_call = decoder.call(0, {"threadId": THREAD, "turnId": TURN, "callId": value}) is not None
    assert is_call == (value == "x")
    events = decoder.notify(
        "turn/completed", {"threadId": THREAD, "turn": {"id": TURN, "status": value, "error": value}}
    )
    assert isinstance(events[-1], Failed)


def test_arguments_that_nest_too_deep_to_be_written_are_no_object() -> None:
    def deeper(frames: int, depth: int) -> list[Event]:
        """Read here, and written further down, where there is less room."""
        if frames:
            return deeper(frames - 1, depth)
        return CodexTurnDecoder("t", "u", names=CodexToolNames(["f"])).call(1, read[depth]) or []

    read: dict[int, dict[str, Any]] = {}
    for depth in range(1000, 850, -1):
        line = b'{"threadId":"t","turnId":"u","callId":"c","tool":"f","arguments":%b}' % (b"[" * depth + b"]" * depth)
        with suppress(BadJson):
            read[depth] = decode(line)
    ends = [deeper(20, depth)[-1] for depth in read]
    raws = [event.part.raw for event in ends if isinstance(event, PartEnded) and isinstance(event.part, ToolCall)]
    assert len(raws) == len(read) > 50
    assert raws[0] in ("null", "[" * max(read) + "]" * max(read))  # Python 3.12 and newer can write it
    assert raws[-1] == "[" * min(read) + "]" * min(read)


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*above, key)
        yield from _places(item, (*above, key))


def _with(value: Any, place: tuple[Any, ...], other: object) -> Any:
    changed = deepcopy(value)
    owner = changed
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = other
    return changed


_DEEP: list[Any] = []
for _ in range(300):
    _DEEP = [_DEEP]
_ODD: list[Any] = [None, True, -1, 10**400, Decimal("1.5"), "", "x", "\ud800", [], {}, [1], {"a": 1}, _DEEP]


@pytest.mark.parametrize(
    ("version", "case", "names"),
    [
        ("0.89.0", "05_reasoning", CodexToolNames()),
        ("0.166.0", "05_reasoning", CodexToolNames()),
        ("0.166.0", "10_error_500", CodexToolNames()),
        ("0.166.0", "54_dynamic_parallel_raw_events", CodexToolNames(["get_weather"])),
    ],
)
def test_whatever_stands_in_a_member_the_answer_keeps_the_rules(version: str, case: str, names: CodexToolNames) -> None:
    messages = [
        record["msg"]
        for record in records(version, case)
        if record["dir"] == "server" and "threadId" in record["msg"].get("params", {})
    ]
    thread = messages[0]["params"]["threadId"]
    turn = next(message["params"]["turn"]["id"] for message in messages if message["method"] == "turn/started")
    tried = set()
    for number, message in enumerate(messages):
        for place in _places(message["params"]):
            if (message["method"], place) in tried:
                continue
            tried.add((message["method"], place))
            for odd in _ODD:
                changed = _with(message, ("params", *place), odd)
                _played(
                    [*messages[:number], changed, *messages[number + 1 :]], CodexTurnDecoder(thread, turn, names=names)
                )
    assert len(tried) > 10


def _played(messages: list[dict[str, Any]], decoder: CodexTurnDecoder) -> None:
    events: list[Event] = []
    for message in messages:
        if "id" in message:
            events += decoder.call(message["id"], message["params"]) or []
        else:
            events += decoder.notify(message["method"], message["params"])
    check_events(events + decoder.end_calls() + decoder.cut())
