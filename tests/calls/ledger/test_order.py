"""The order in which a history is written anew."""

from __future__ import annotations

from tests.calls.telling import assistant, call, result, settled, shown, system, tool, user
from toolwire.calls.ledger.order import ENDING, OPENING
from toolwire.types import Reasoning


def test_results_come_in_the_order_of_their_calls() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a"), call("b")), tool(result("b")), tool(result("a")))
    assert shown(messages) == ["user:hi", "call:a", "call:b", "result:a", "result:b"]
    assert kinds == ["order"]
    assert all(message.source for message in messages)


def test_words_beside_results_move_behind_them() -> None:
    mixed = user("first", result("b"), "second", result("a"), "third")
    messages, kinds = settled(user("hi"), assistant(call("a"), call("b")), mixed, origin="messages")
    assert shown(messages)[3:] == ["result:a", "result:b", "user:first", "user:second", "user:third"]
    assert kinds == ["order"]


def test_each_message_of_calls_is_a_turn_of_its_own() -> None:
    calls = (assistant(call("a")), assistant(call("b")))
    messages, _ = settled(user("hi"), *calls, tool(result("a")), tool(result("b")))
    assert shown(messages) == ["user:hi", "call:a", "result:a", "call:b", "result:b"]


def test_results_in_a_message_of_the_assistant_become_messages_of_their_own() -> None:
    results = assistant(result("a"), result("b"))
    messages, kinds = settled(user("hi"), assistant(call("a"), call("b")), results, user("so"), origin="messages")
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert shown(messages)[3:5] == ["result:a", "result:b"]
    assert kinds == ["order"]


def test_an_orphan_among_results_is_sent_after_them() -> None:
    messages, kinds = settled(
        user("hi"), assistant(call("a")), user(result("z", "lost"), result("a"), "so"), origin="messages"
    )
    words = shown(messages)
    assert words[2] == "result:a"
    assert words[4:] == ["user:lost", "user:[end of that result]", "user:so"]
    assert kinds == ["orphan_result"]


def test_an_orphan_in_an_instruction_is_not_one() -> None:
    messages, _ = settled(user("hi"), system("note", result("z", "lost")), assistant("ok"))
    assert [(message.role, len(message.parts)) for message in messages[1:3]] == [("system", 1), ("user", 3)]


def test_an_orphan_without_output_says_so() -> None:
    messages, _ = settled(user("hi"), tool(result("z", "")))
    assert shown(messages)[1].endswith("no output]")


def test_a_conversation_that_ended_with_a_result_does_not_end_with_the_assistant() -> None:
    messages, kinds = settled(user("hi"), assistant(call("a")), user("so"), assistant("ok"), tool(result("a")))
    assert shown(messages)[-2:] == ["assistant:ok", f"user:{ENDING}"]
    assert kinds == ["order", "ending"]
    messages, kinds = settled(user("hi"), assistant("so far"))
    assert kinds == []


def test_a_conversation_of_which_nothing_is_left_starts_again() -> None:
    messages, kinds = settled(system("rules"), assistant(""))
    assert shown(messages) == ["system:rules", f"user:{OPENING}"]
    assert kinds == ["empty", "opening"]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    thought = Reasoning(text="hm")
    messages, kinds = settled(user("hi"), assistant(thought), user("so"), assistant("x", thought))
    assert shown(messages) == ["user:hi", "user:so", "assistant:x"]
    assert kinds == ["reasoning", "reasoning"]
    run = (user("hi"), assistant(thought), assistant(thought), assistant("x"), assistant(thought), user("so"))
    messages, kinds = settled(*run, origin="responses")
    assert kinds == ["reasoning"]
    assert shown(messages)[-2:] == ["assistant:x", "user:so"]
