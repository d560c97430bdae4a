"""Which result answers which call."""

from __future__ import annotations

from tests.calls.telling import assistant, call, mended, result, settled, shown, tool, user
from toolwire.calls.ledger.pairs import pair_calls
from toolwire.calls.ledger.rules import Placed, Repair
from toolwire.types import Message, Text, ToolCall, ToolResult


def texts(*messages: Message, origin: str = "chat") -> dict[str, str]:
    """What each call was answered."""
    done, _ = settled(*messages, origin=origin)
    parts = [part for message in done for part in message.parts]
    return {
        part.call_id: part.parts[0].text[:12]
        for part in parts
        if isinstance(part, ToolResult) and part.parts and isinstance(part.parts[0], Text)
    }


def test_a_late_result_goes_to_its_call() -> None:
    messages, kinds = settled(
        user("hi"), assistant(call("a")), user("wait"), assistant("ok"), tool(result("a")), user("so")
    )
    assert shown(messages) == ["user:hi", "call:a", "result:a", "user:wait", "assistant:ok", "user:so"]
    assert kinds == ["order"]
    assert all(message.source for message in messages)


def test_of_two_open_calls_of_one_id_the_nearer_is_answered() -> None:
    twice = (
        user("hi"),
        assistant(call("a")),
        user("again"),
        assistant(call("a", raw='{"n":1}')),
        tool(result("a", "new")),
    )
    assert texts(*twice) == {"a": "Interrupted:", "a_2": "new"}


def test_an_early_result_goes_to_its_call_if_no_message_is_between() -> None:
    messages, kinds = settled(user("hi"), tool(result("a")), assistant(call("a")))
    assert shown(messages) == ["user:hi", "call:a", "result:a"]
    assert kinds == ["order"]
    _, kinds = settled(user("hi"), tool(result("a")), user("so"), assistant(call("a")))
    assert kinds == ["missing_result", "orphan_result"]


def test_the_first_result_stays_and_a_copy_is_left_out() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a")), tool(result("a", "one")), tool(result("a", "one")))
    assert shown(messages) == ["user:hi", "call:a", "result:a"]
    assert kinds == ["duplicate_result"]


def test_a_second_result_that_says_more_is_sent_as_text() -> None:
    pair = (assistant(call("a")), tool(result("a", "one")), tool(result("a", "two")))
    messages, kinds = settled(user("hi"), *pair, assistant("ok"))
    assert texts(user("hi"), *pair) == {"a": "one"}
    assert shown(messages)[3].startswith("user:[second result of an earlier tool call")
    assert shown(messages)[4:] == ["user:two", "user:[end of that result]", "assistant:ok"]
    assert kinds == ["duplicate_result"]


def test_a_copy_does_not_answer_an_older_call_that_was_interrupted() -> None:
    older, newer = assistant(call("a")), assistant(call("a", raw='{"n":1}'))
    answers = (tool(result("a", "x")), tool(result("a", "x")))
    assert texts(user("hi"), older, user("again"), newer, *answers) == {"a": "Interrupted:", "a_2": "x"}


def test_the_same_call_without_any_result_is_one_call() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a"), call("a")))
    assert shown(messages) == ["user:hi", "call:a", "failed:a"]
    assert kinds == ["duplicate_call", "missing_result"]


def test_a_result_of_another_kind_of_item_becomes_its_calls() -> None:
    custom = assistant(call("a", kind="custom", args=None))
    messages, kinds = settled(user("hi"), custom, tool(result("a")), origin="responses")
    answer = messages[2].parts[0]
    assert isinstance(answer, ToolResult)
    assert answer.kind == "custom"
    assert kinds == ["kind"]


def test_a_typed_pair_with_a_new_id_is_sent_as_a_function_on_both_sides() -> None:
    pair = (assistant(call("a", kind="typed", item_id="lsh_1")), tool(result("a", kind="typed")))
    messages, repairs = mended(user("hi"), *pair, user("more"), *pair, origin="responses")
    assert [repair.kind for repair in repairs] == ["duplicate_id"]
    called, answer = messages[4].parts[0], messages[5].parts[0]
    assert isinstance(called, ToolCall)
    assert isinstance(answer, ToolResult)
    assert (called.kind, called.item_id, answer.kind) == ("function", "", "function")
    assert messages[1].source is not None


def test_one_item_id_on_two_calls_stays_with_the_first() -> None:
    first, second = (assistant(call(name, item_id="fc_1")) for name in "ab")
    messages, kinds = settled(user("hi"), first, second, tool(result("a")), tool(result("b")), origin="responses")
    calls = [part for message in messages for part in message.parts if isinstance(part, ToolCall)]
    assert [(one.id, one.item_id) for one in calls] == [("a", "fc_1"), ("b", "")]
    assert kinds == ["duplicate_id"]


def test_turns_are_known_by_their_last_line() -> None:
    repairs: list[Repair] = []
    messages = (user("hi"), assistant(call("a")), assistant(call("b")), tool(result("a")), tool(result("b")))
    lines = [Placed(place, message) for place, message in enumerate(messages)]
    assert {end: len(slots) for end, slots in pair_calls(lines, True, set(), repairs).turns.items()} == {2: 2}
    assert {end: len(slots) for end, slots in pair_calls(lines, False, set(), repairs).turns.items()} == {1: 1, 2: 1}
    assert repairs == []


def test_a_result_without_an_id_answers_the_first_open_call_of_its_name() -> None:
    calls = assistant(call("a"), call("b"))
    assert texts(user("hi"), calls, tool(result("", "one")), tool(result("", "two"))) == {"a": "one", "b": "two"}
    messages, kinds = settled(user("hi"), calls, tool(result("", "one")), tool(result("b", "two")))
    assert shown(messages) == ["user:hi", "call:a", "call:b", "result:a", "result:b"]
    assert kinds == ["duplicate_id"]
    named = ToolResult(call_id="", name="g", parts=(Text(text="one"),))
    other = ToolCall(id="b", name="g", raw="{}", args={})
    assert texts(user("hi"), assistant(call("a"), other), tool(named))["b"] == "one"


def test_a_call_without_an_id_takes_the_first_result_that_has_no_call() -> None:
    found = texts(user("hi"), assistant(call(""), call("b")), tool(result("x", "one")), tool(result("b", "two")))
    assert found == {"call_2": "one", "b": "two"}


def test_ids_that_differ_are_not_paired() -> None:
    _, kinds = settled(user("hi"), assistant(call("a")), tool(result("x")))
    assert kinds == ["missing_result", "orphan_result"]
    _, kinds = settled(user("hi"), assistant(call("a")), user("so"), tool(result("", "late")))
    assert kinds == ["missing_result", "orphan_result"]
