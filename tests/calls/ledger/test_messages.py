"""Single messages: texts, arguments, the place of calls."""

from __future__ import annotations

from tests.calls.telling import assistant, call, result, shown, system, user
from toolwire.calls.ledger.messages import as_function, repair_messages
from toolwire.calls.ledger.rules import HistoryRules, Repair
from toolwire.types import Message, Opaque, Reasoning, ToolCall


def tidy(*messages: Message) -> tuple[list[str], list[str]]:
    repairs: list[Repair] = []
    lines = repair_messages(messages, HistoryRules(), repairs)
    return shown([line.message for line in lines]), [repair.kind for repair in repairs]


def test_what_is_well_stays_the_same_object() -> None:
    messages = (system(""), user("hi"), assistant("\n", call("a")), user(result("a", "")), system("x"), assistant("y"))
    repairs: list[Repair] = []
    assert [line.message for line in repair_messages(messages, HistoryRules(), repairs)] == list(messages)
    assert all(line.message is messages[line.place] for line in repair_messages(messages, HistoryRules(), repairs))
    assert repairs == []


def test_white_space_beside_what_only_its_provider_knows_says_nothing() -> None:
    found = Opaque(dialect="messages", value={"type": "web_search_tool_result"})
    assert tidy(user("hi"), assistant(found, " ")) == (["user:hi", "assistant:Opaque"], ["empty"])
    assert tidy(user("hi"), assistant(found, " ", "yes"))[1] == []
    assert tidy(user("hi"), assistant(found))[1] == []


def test_no_message_is_empty() -> None:
    assert tidy(user("")) == (["user:(empty message)"], ["empty"])
    assert tidy(user()) == (["user:(empty message)"], ["empty"])
    assert tidy(user("hi"), assistant(), assistant("", " ")) == (["user:hi"], ["empty", "empty"])
    assert tidy(user("hi"), system(" "), system("x", "")) == (["user:hi", "system:x"], ["empty", "empty"])


def test_a_message_that_held_half_of_a_pair_alone_is_gone() -> None:
    found = Opaque(dialect="messages", value={"type": "web_search_tool_result", "tool_use_id": "s1"})
    assert tidy(user("hi"), user(found), assistant("x")) == (["user:hi", "assistant:x"], ["hosted"])


def test_thoughts_behind_the_last_call_are_left_out_but_not_the_words() -> None:
    thought = Reasoning(text="hm", signature="s")
    words, kinds = tidy(user("hi"), assistant(thought, call("a"), thought, "so"))
    assert words == ["user:hi", "assistant:Reasoning", "assistant:so", "call:a"]
    assert kinds == ["reasoning", "order"]


def test_a_typed_call_with_arguments_that_are_none_is_sent_as_a_function() -> None:
    repairs: list[Repair] = []
    given = call("a", "local_shell", kind="typed", raw="ls", args=None, item_id="lsh_1")
    mended = repair_messages((user("hi"), assistant(given)), HistoryRules(), repairs)[1].message.parts[0]
    assert isinstance(mended, ToolCall)
    assert (mended.kind, mended.item_id, mended.args) == ("function", "", {"_raw": "ls"})


def test_only_typed_calls_become_functions() -> None:
    custom = call("a", kind="custom", item_id="ctc_1")
    assert as_function(custom) is custom
