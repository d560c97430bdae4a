"""Histories broken in each known way, one test a hazard; and by a generator, on upstreams that refuse what providers refuse."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.calls.histories import DIALECTS as ORIGINS
from tests.calls.histories import broken, sound
from tests.calls.refusing import refusals
from tests.calls.telling import assistant, call, mended, result, settled, shown, system, tool, user
from tests.thorough import examples
from toolwire.calls.ledger.order import OPENING
from toolwire.calls.ledger.pairs import INTERRUPTED
from toolwire.calls.ledger.repair import Recipient, RepairedRequest, losses_of, repair_history
from toolwire.calls.ledger.rules import Repair
from toolwire.calls.tools.adapter import adapt_ids
from toolwire.calls.tools.kinds import to_functions
from toolwire.dialects import DIALECTS
from toolwire.profiles import ANTHROPIC, OPENAI_CHAT, RESPONSES
from toolwire.types import Media, Message, Opaque, Reasoning, Request, State, Text, Thinking, ToolCall, ToolResult

PROFILES = {"chat": OPENAI_CHAT, "responses": RESPONSES, "messages": ANTHROPIC}
PICTURE = Media(kind="image", url="https://example.com/a.png")


def faults(settled: RepairedRequest, marks: list[str]) -> list[str]:
    """What each kind of upstream refuses of it, and which words did not arrive."""
    request, found = settled.request, []
    for dialect, profile in PROFILES.items():
        is_own = dialect == request.origin
        lowered = to_functions(request, profile.tool_kinds if is_own else frozenset(), longest=0 if is_own else 64)
        fitted = replace(lowered.request, messages=adapt_ids(lowered.request.messages, profile.ids))
        body = DIALECTS[dialect].encode_request(fitted, profile).body
        found += [f"{dialect}: {fault}" for fault in refusals(dialect, body, checks_ids=True)]
        text = body.decode()
        found += [f"{dialect}: {mark} is lost" for mark in marks if mark not in text]
    return found


@pytest.mark.parametrize("origin", ORIGINS)
@examples(150)
@given(random=st.randoms(use_true_random=False))
def test_no_upstream_refuses_a_broken_history(origin: str, random: Random) -> None:
    body, marks = broken(random, origin)
    settled = repair_history(DIALECTS[origin].decode_request(body, {}))
    assert faults(settled, marks) == []
    again = repair_history(settled.request)
    assert again.request is settled.request
    assert again.repairs == ()


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_upstreams_do_refuse_them_as_they_come(origin: str) -> None:
    """Else the test above would prove nothing."""
    refused = 0
    for seed in range(60):
        body, _ = broken(Random(seed), origin)
        request = DIALECTS[origin].decode_request(body, {})
        refused += bool(faults(RepairedRequest(request), []))
    assert refused > 30


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_sound_history_stays_the_same_object(origin: str) -> None:
    for seed in range(60):
        newest = {"anthropic-beta": "x"}  # with system messages
        request = DIALECTS[origin].decode_request(sound(Random(seed), origin), newest)
        assert repair_history(request).request is request


def test_H022_malformed_arguments_go_on_as_an_object_and_keep_their_pair() -> None:
    bad = call("a", raw='{"path": "x', args=None)
    messages, kinds = settled(user("hi"), assistant(bad), tool(result("a")))
    assert shown(messages) == ["user:hi", "call:a", "result:a"]
    assert kinds == ["arguments"]
    mended_call = messages[1].parts[0]
    assert isinstance(mended_call, ToolCall)
    assert mended_call.args == {"_raw": '{"path": "x'}
    assert json.loads(mended_call.raw) == mended_call.args


def test_H023_the_canonical_call_is_the_one_that_is_mended() -> None:
    """Whatever is downstream reads the same arguments."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}, *_chat_pair("[1]")]}
    request = repair_history(DIALECTS["chat"].decode_request(json.dumps(body).encode(), {})).request
    sent = {
        dialect: json.loads(DIALECTS[dialect].encode_request(request, profile).body)
        for dialect, profile in PROFILES.items()
    }
    assert sent["messages"]["messages"][1]["content"][0]["input"] == {"_raw": "[1]"}
    assert json.loads(sent["chat"]["messages"][1]["tool_calls"][0]["function"]["arguments"]) == {"_raw": "[1]"}
    assert json.loads(sent["responses"]["input"][1]["arguments"]) == {"_raw": "[1]"}


def test_H024_what_was_malformed_is_kept_for_telemetry_and_sent_to_no_client() -> None:
    _, repairs = mended(user("hi"), assistant(call("a", raw="secret", args=None)), tool(result("a")))
    assert [repair.raw for repair in repairs] == ["secret"]
    assert "secret" not in str(losses_of(repairs))


def test_free_text_is_no_malformed_object() -> None:
    custom = call("a", raw="*** Begin Patch", args=None, kind="custom")
    _, kinds = settled(user("hi"), assistant(custom), tool(result("a")))
    assert kinds == []


def test_H032_a_result_without_its_call_is_sent_as_text_with_its_media() -> None:
    lost = ToolResult(call_id="z", parts=(Text(text="42"), PICTURE), name="read", is_error=True)
    messages, kinds = settled(user("hi"), assistant("yes"), tool(lost), user("go on"))
    assert kinds == ["orphan_result"]
    assert [message.role for message in messages] == ["user", "assistant", "user", "user"]
    head, text, picture, end = messages[2].parts
    assert isinstance(head, Text)
    assert '"z"' in head.text
    assert '"read"' in head.text
    assert "failed" in head.text
    assert text == Text(text="42")
    assert picture is PICTURE
    assert isinstance(end, Text)


def test_H033_a_call_without_a_result_gets_one_that_says_so() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a"), call("b")), tool(result("a")), user("stop"))
    assert shown(messages) == ["user:hi", "call:a", "call:b", "result:a", "failed:b", "user:stop"]
    assert kinds == ["missing_result"]
    assert messages[2].source is not None


def test_H034_texts_behind_a_call_go_before_it() -> None:
    messages, kinds = settled(user("hi"), assistant("one", call("a"), "two"), user(result("a")), origin="messages")
    assert shown(messages) == ["user:hi", "assistant:one", "assistant:two", "call:a", "result:a"]
    assert kinds == ["order"]
    assert messages[2].source is not None


@pytest.mark.parametrize("lost", [0, 1])
def test_H035_what_a_provider_ran_is_there_as_a_pair_or_not_at_all(lost: int) -> None:
    use = Opaque(dialect="messages", value={"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"})
    found = Opaque(dialect="messages", value={"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1"})
    _, kinds = settled(user("hi"), assistant(use, found, "yes"), user("so"), assistant("no"), origin="messages")
    assert kinds == []
    half = assistant(*[part for part in (use, found) if part is not (use, found)[lost]], "yes")
    messages, kinds = settled(user("hi"), half, user("so"), assistant("no"), origin="messages")
    assert kinds == ["hosted"]
    assert shown(messages) == ["user:hi", "assistant:yes", "user:so", "assistant:no"]


def test_H035_a_pause_of_the_provider_is_over_when_a_message_follows() -> None:
    use = Opaque(dialect="messages", value={"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search"})
    told = Message(role="system", parts=(Text(text="be brief"),))
    messages, kinds = settled(user("hi"), assistant("well", use), told, assistant("no"), origin="messages")
    assert kinds == ["hosted"]
    assert shown(messages) == ["user:hi", "assistant:well", "system:be brief", "assistant:no"]
    _, kinds = settled(user("hi"), assistant("well", use), origin="messages")
    assert kinds == []


def test_H036_interrupted_is_neither_refused_nor_undone() -> None:
    messages, _ = settled(user("hi"), assistant(call("a")), user("stop"))
    answer = messages[2].parts[0]
    assert isinstance(answer, ToolResult)
    assert answer.is_error
    assert answer.parts == (Text(text=INTERRUPTED),)
    assert "may have run" in INTERRUPTED


def test_H037_a_stale_result_is_no_result_of_a_later_call() -> None:
    """Its call was compacted away, and the provider counts from 0 again."""
    messages, kinds = settled(user("hi"), tool(result("call_0", "old")), user("so"), assistant(call("call_0")))
    assert shown(messages)[-2:] == ["call:call_0", "failed:call_0"]
    assert kinds == ["missing_result", "orphan_result"]


def test_H038_a_call_at_the_very_end_is_answered() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a")), origin="responses")
    assert shown(messages) == ["user:hi", "call:a", "failed:a"]
    assert kinds == ["missing_result"]


@pytest.mark.parametrize("kind", ["function", "custom", "typed"])
def test_H039_calls_of_every_kind_get_the_result_of_their_kind(kind: Any) -> None:
    """A typed call's own item cannot be answered by an error of ours: call and result are told as a function's."""
    given = call("a", "local_shell", kind=kind, item_id="lsh_1", args=None if kind == "custom" else {})
    messages, _ = settled(user("hi"), assistant(given), user("stop"), origin="responses")
    called, answer = messages[1].parts[0], messages[2].parts[0]
    assert isinstance(called, ToolCall)
    assert isinstance(answer, ToolResult)
    assert called.kind == answer.kind == ("function" if kind == "typed" else kind)
    assert called.item_id == ("" if kind == "typed" else "lsh_1")


def test_H040_each_of_several_items_of_one_turn_is_answered_behind_the_last() -> None:
    messages, kinds = settled(
        user("hi"), assistant(call("a")), assistant(call("b")), tool(result("b")), origin="responses"
    )
    assert shown(messages) == ["user:hi", "call:a", "call:b", "failed:a", "result:b"]
    assert kinds == ["missing_result"]


def test_H041_an_output_whose_call_item_is_lost_is_sent_as_text() -> None:
    messages, kinds = settled(tool(result("call_1", "42")), user("go on"), origin="responses")
    assert kinds == ["orphan_result"]
    assert shown(messages)[1:] == ["user:42", "user:[end of that result]", "user:go on"]


def test_H041_what_a_provider_remembers_is_left_to_it() -> None:
    for state in (State(previous="resp_1"), State(conversation="conv_1"), State(references=("fc_1",))):
        request = Request(model="m", messages=(tool(result("call_1")),), origin="responses", state=state)
        assert repair_history(request).request is request
    own = Request(model="m", messages=(tool(result("call_1")),), origin="responses", state=State(is_kept=True))
    assert repair_history(own).repairs


@examples(60)
@given(random=st.randoms(use_true_random=False))
def test_H042_each_turn_has_as_many_results_as_calls_in_their_order(random: Random) -> None:
    body, _ = broken(random, "chat")
    due: list[str] = []
    for message in repair_history(DIALECTS["chat"].decode_request(body, {})).request.messages:
        answered = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        assert answered == due[: len(answered)]
        due = due[len(answered) :]
        if not answered:
            assert due == []
        due += [part.id for part in message.parts if isinstance(part, ToolCall)]
    assert due == []


def test_H048_an_id_used_again_in_a_later_turn_gets_a_number_with_its_result() -> None:
    turn = (assistant(call("call_0")), tool(result("call_0", "x")))
    messages, kinds = settled(user("hi"), *turn, user("more"), *turn, assistant("ok"), *turn)
    assert shown(messages)[1:3] == ["call:call_0", "result:call_0"]
    assert shown(messages)[4:6] == ["call:call_0_2", "result:call_0_2"]
    assert shown(messages)[7:9] == ["call:call_0_3", "result:call_0_3"]
    assert kinds == ["duplicate_id", "duplicate_id"]
    assert messages[1].source is not None


def test_H049_the_same_call_twice_with_one_result_is_one_call() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a"), call("a")), tool(result("a")))
    assert shown(messages) == ["user:hi", "call:a", "result:a"]
    assert kinds == ["duplicate_call"]
    snapshots = (assistant(call("a")), assistant(call("a"), call("b")))
    messages, kinds = settled(user("hi"), *snapshots, tool(result("a")), tool(result("b")))
    assert shown(messages) == ["user:hi", "call:a", "call:b", "result:a", "result:b"]
    assert kinds == ["duplicate_call"]


def test_H050_two_calls_with_the_tools_name_as_id_are_distinguished() -> None:
    calls = [call("http", raw='{"n":1}', args={"n": 1}), call("http", raw='{"n":2}', args={"n": 2})]
    answers = [tool(result("http", "one")), tool(result("http", "two"))]
    messages, kinds = settled(user("hi"), assistant(*calls), *answers)
    assert shown(messages) == ["user:hi", "call:http", "call:http_2", "result:http", "result:http_2"]
    assert kinds == ["duplicate_id"]
    assert [part.parts for message in messages[2:] for part in message.parts if isinstance(part, ToolResult)] == [
        (Text(text="one"),),
        (Text(text="two"),),
    ]


def test_H051_calls_without_ids_get_some_and_their_results_by_their_order() -> None:
    calls = assistant(call("", raw='{"n":1}'), call("", raw='{"n":2}'))
    messages, _ = settled(user("hi"), calls, tool(result("", "one")), tool(result("", "two")))
    assert shown(messages) == ["user:hi", "call:call_2", "call:call_3", "result:call_2", "result:call_3"]


def test_a_new_id_is_unique() -> None:
    turns = [part for name in ("a", "a", "a_2") for part in (assistant(call(name)), tool(result(name)))]
    messages, _ = settled(user("hi"), *turns)
    assert [word for word in shown(messages) if word.startswith("call")] == ["call:a", "call:a_3", "call:a_2"]


def test_H077_a_repair_is_final() -> None:
    """The helper settles everything twice; here for a history that needs all of it at once."""
    _, kinds = settled(
        assistant(call("a"), "text", call("a", raw="x", args=None)),
        tool(result("z")),
        user("", result("a"), "hi", result("a", "other")),
        assistant(Reasoning(text="hm")),
        tool(result("a")),
    )
    assert set(kinds) >= {"opening", "arguments", "order", "orphan_result", "empty", "reasoning", "duplicate_id"}


def test_H080_reasoning_behind_a_call_begins_a_turn_of_its_own() -> None:
    thoughts = [Reasoning(text=text, signature=text) for text in ("one", "two")]
    mixed = assistant(thoughts[0], call("a"), thoughts[1], call("b"))
    messages, kinds = settled(user("hi"), mixed, user(result("a"), result("b")), origin="messages")
    assert shown(messages) == [
        "user:hi",
        "assistant:Reasoning",
        "call:a",
        "result:a",
        "assistant:Reasoning",
        "call:b",
        "result:b",
    ]
    assert set(kinds) == {"order"}
    assert messages[1].parts[0] is thoughts[0]
    assert messages[3].parts[0] is thoughts[1]


def test_H096_a_conversation_begins_with_the_user() -> None:
    messages, kinds = settled(system("rules"), assistant(call("a")), tool(result("a")), origin="messages")
    assert shown(messages) == ["system:rules", f"user:{OPENING}", "call:a", "result:a"]
    assert kinds == ["opening"]


def test_H139_texts_without_a_word_are_left_out() -> None:
    messages, kinds = settled(
        user("", "hi"), assistant("", call("a")), tool(result("a", "")), assistant(""), user(" \n"), origin="messages"
    )
    assert shown(messages) == ["user:hi", "call:a", "result:a", "user:(empty message)"]
    assert kinds == ["empty"] * 4


def test_H140_what_the_api_takes_stays() -> None:
    """White space that the model wrote before a call, and results without output."""
    kept = (user("hi"), assistant("\n\n", call("a")), user(result("a", "")), assistant("ok"))
    messages, kinds = settled(*kept, origin="messages")
    assert kinds == []
    assert messages == list(kept)


def test_instructions_between_call_and_result_move_behind() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a")), system("note"), tool(result("a")), assistant("ok"))
    assert shown(messages) == ["user:hi", "call:a", "result:a", "system:note", "assistant:ok"]
    assert kinds == ["order"]
    assert all(message.source for message in messages)


def test_instructions_behind_the_results_are_in_their_place() -> None:
    _, kinds = settled(user("hi"), assistant(call("a")), tool(result("a")), system("note"), assistant("ok"))
    assert kinds == []


def test_many_repairs_are_reported_as_few_losses() -> None:
    repairs = (
        *[Repair("order", f"messages[{number}]", "why") for number in range(3)],
        Repair("opening", "messages", "so"),
    )
    assert [(loss.feature, loss.where, loss.why) for loss in losses_of(repairs)] == [
        ("history.order", "messages[0]", "why (3 times)"),
        ("history.opening", "messages", "so"),
    ]


def test_a_hostile_history_takes_linear_time() -> None:
    """Ten thousand equal calls and results: were a step quadratic, this would not end in a second."""
    same = [tool(result("a", "x"))] * 10_000
    different = assistant(*[call("a", raw=str(number)) for number in range(10_000)])
    messages, _ = settled(user("hi"), different, *same)
    assert len(messages) == 10_002


def _chat_pair(arguments: str) -> list[Any]:
    made = {"id": "a", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "a", "content": "done"},
    ]


def test_white_space_behind_the_last_words_is_left_out() -> None:
    messages, kinds = settled(user("hi"), assistant("The answer is \n", " "))
    assert shown(messages) == ["user:hi", "assistant:The answer is"]
    assert kinds == ["ending"]


def test_H140_results_of_a_turn_share_one_message_or_have_one_each() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a"), call("b")), user(result("a")), user(result("b"), "so"))
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert kinds == ["order"]


def test_H012_arguments_of_no_words_are_an_empty_object() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a", raw="", args=None)), tool(result("a")))
    assert kinds == ["arguments"]
    assert messages[1].parts[0] == call("a")


def signed(*messages: Message, mode: Any = "on") -> RepairedRequest:
    request = Request(
        model="m", messages=messages, origin="messages", thinking=Thinking(mode=mode, budget=1024), wire=b"{}"
    )
    first = repair_history(request, Recipient(is_strict=True))
    again = repair_history(first.request, Recipient(is_strict=True))
    assert again.request is first.request
    return first


def test_H076_a_thought_that_lost_its_signature_is_left_out_for_who_signs_it() -> None:
    bare = (user("hi"), assistant(Reasoning(text="hm"), "yes"), user("so"))
    done = signed(*bare)
    assert shown(list(done.request.messages)) == ["user:hi", "assistant:yes", "user:so"]
    assert [repair.kind for repair in done.repairs] == ["reasoning"]
    assert settled(*bare, origin="messages")[1] == []


def test_H075_no_reasoning_is_sent_in_a_turn_that_did_not_begin_with_a_thought() -> None:
    done = signed(user("hi"), assistant(Reasoning(text="hm"), call("a")), user(result("a")))
    assert [repair.kind for repair in done.repairs] == ["reasoning", "thinking"]
    assert done.request.thinking == Thinking(mode="off", budget=1024)
    assert done.request.wire == b""
    well = signed(user("hi"), assistant(Reasoning(text="hm", signature="s"), call("a")), user(result("a")))
    assert well.repairs == ()
    assert well.request.thinking == Thinking(mode="on", budget=1024)
    assert signed(user("hi"), assistant(call("a")), user(result("a")), mode="adaptive").repairs == ()


def test_a_result_sent_as_text_separates_a_use_from_its_outcome() -> None:
    use = Opaque(dialect="messages", value={"type": "server_tool_use", "id": "s"})
    found = Opaque(dialect="messages", value={"type": "web_search_tool_result", "tool_use_id": "s"})
    messages, kinds = settled(
        user("hi"), assistant("a", use), user(result("z")), assistant(found, "b"), origin="messages"
    )
    assert kinds == ["orphan_result", "hosted", "hosted"]
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
    assert shown(messages)[-1] == "assistant:b"


def test_where_only_instructions_speak_those_without_a_word_go() -> None:
    assert shown(settled(system("be brief"), system(" "))[0]) == ["system:be brief"]
    assert shown(settled(system(""))[0]) == [f"user:{OPENING}"]
