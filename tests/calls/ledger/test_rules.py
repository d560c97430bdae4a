"""The look that every request pays for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.calls.telling import assistant, call, result, settled, shown, system, tool, user
from toolwire.calls.ledger.repair import Recipient, is_valid, lacks_thought, repair_history
from toolwire.calls.ledger.rules import (
    ATTACHED,
    HistoryRules,
    Placed,
    answers,
    has_copies,
    has_lost,
    is_loaded,
    is_proven,
    is_void,
    item_id,
    thoughtless,
    unproven,
)
from toolwire.types import (
    Media,
    Message,
    Opaque,
    Reasoning,
    Request,
    Source,
    State,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)


def test_a_message_keeps_its_place_when_it_is_encoded_again() -> None:
    line = Placed(3, user("hi"))
    assert line.where == "messages[3]"
    assert line.having(user("there")).where == "messages[3]"


SEARCH = Opaque(dialect="responses", value={"type": "web_search_call", "id": "ws_1"})


def item(part: Text | Reasoning | ToolCall | Opaque, **members: object) -> Message:
    value = {"type": "x", "id": getattr(part, "item_id", ""), **members}
    return Message(role="assistant", parts=(part,), source=Source("responses", value))


def thought(name: str, encrypted: str | None = "gAAA") -> Message:
    return item(Reasoning(text="hm", item_id=name, encrypted=encrypted))


def said(text: str, name: str = "") -> Message:
    return item(Text(text=text, item_id=name), annotations=[])


def called(name: str, number: str) -> list[Message]:
    return [item(call(name, item_id=number)), tool(result(name))]


def ids(messages: tuple[Message, ...] | list[Message]) -> list[str]:
    return [item_id(message) for message in messages if message.role == "assistant"]


def strictly(*messages: Message, is_kept: bool = False) -> tuple[list[Message], list[str]]:
    state = State(is_kept=True) if is_kept else None
    request = Request(model="m", messages=messages, origin="responses", thinking=Thinking(effort="low"), state=state)
    first = repair_history(request, Recipient(is_strict=True))
    assert repair_history(first.request, Recipient(is_strict=True)).request is first.request
    return list(first.request.messages), [repair.kind for repair in first.repairs]


@pytest.mark.parametrize(
    ("message", "known"),
    [
        (said("yes", "msg_1"), "msg_1"),
        (thought("rs_1"), "rs_1"),
        (item(SEARCH), "ws_1"),
        (item(Opaque(dialect="responses", value={"id": 7})), ""),
        (user("hi"), ""),
        (user(), ""),
    ],
)
def test_every_kind_of_item_has_its_id(message: Message, known: str) -> None:
    assert item_id(message) == known


def test_copies_are_found() -> None:
    assert has_copies((said("a", "msg_1"), said("b", "msg_1")))
    assert not has_copies((said("a", "msg_1"), said("b", "msg_2"), said("c"), said("d")))


def test_a_copied_thought_or_search_goes_and_copied_words_go_on_without_an_id() -> None:
    run = (thought("rs_1"), said("a", "msg_1"), item(SEARCH))
    messages, kinds = settled(user("hi"), *run, user("so"), *run, origin="responses")
    assert kinds == ["duplicate_item"] * 3
    assert ids(messages) == ["rs_1", "msg_1", "ws_1", ""]
    copy = messages[-1]
    assert copy.parts == (Text(text="a"),)
    assert copy.source == Source("responses", {"type": "x", "annotations": []})


def test_the_thought_that_leads_to_something_is_the_one_that_stays() -> None:
    messages, _ = settled(thought("rs_1"), user("hi"), thought("rs_1"), said("a", "msg_1"), origin="responses")
    assert ids(messages) == ["rs_1", "msg_1"]


def test_items_before_which_no_thought_stands_in_their_turn_are_thoughtless() -> None:
    history = (user("hi"), said("a", "msg_1"), thought("rs_2"), said("b", "msg_2"), user("so"), said("c", "msg_3"))
    assert has_lost(history)
    assert not has_lost((user("hi"), thought("rs_1"), said("b", "msg_2"), said("c"), item(SEARCH)))
    lines = [Placed(number, message) for number, message in enumerate(history)]
    assert thoughtless(lines, history) == {1, 5}
    assert thoughtless([*lines[:2], *lines[3:]], history) == {1, 3, 5}


def test_a_provider_that_knows_its_items_gets_thoughtless_ones_without_their_ids() -> None:
    messages, kinds = strictly(
        user("hi"), said("a", "msg_1"), *called("x", "fc_1"), thought("rs_2"), *called("y", "fc_2")
    )
    assert ids(messages) == ["", "", "rs_2", "fc_2"]
    assert kinds == ["reasoning", "reasoning"]
    assert messages[1].source == Source("responses", {"type": "x", "annotations": []})


def test_others_get_them_with_their_ids() -> None:
    history = (user("hi"), said("a", "msg_1"), thought("rs_2"), *called("y", "fc_2"))
    assert settled(*history, origin="responses") == (list(history), [])


def test_a_thought_without_its_proof_goes_unless_the_provider_keeps_it() -> None:
    history = (user("hi"), thought("rs_1"), said("a", "msg_1"), thought("rs_2", None), said("b", "msg_2"))
    messages, kinds = strictly(*history)
    assert ids(messages) == ["rs_1", "msg_1", ""]
    assert kinds == ["reasoning", "reasoning"]
    assert strictly(*history, is_kept=True) == (list(history), [])


def test_a_typed_call_that_loses_its_id_is_sent_as_a_function() -> None:
    typed = item(call("x", "shell", item_id="sh_1", kind="typed"))
    messages, _ = strictly(user("hi"), typed, tool(result("x", kind="typed")), thought("rs_1"), said("a"))
    part = messages[1].parts[0]
    assert isinstance(part, ToolCall)
    assert (part.kind, part.item_id, messages[1].source) == ("function", "", None)
    assert messages[2].parts[0].kind == "function"  # type: ignore[union-attr] # it is a result


def test_a_turn_of_assistants_alone_is_left_to_other_dialects() -> None:
    assert settled(user("hi"), assistant("a"), assistant("b"))[1] == []


PICTURE = Media(kind="image", url="https://example.com/a.png")


def failed(call_id: str, *parts: Text | Media) -> ToolResult:
    return ToolResult(call_id=call_id, parts=parts, is_error=True)


def test_only_failed_results_with_media_are_loaded() -> None:
    assert is_loaded(failed("a", PICTURE))
    assert not is_loaded(failed("a", Text(text="no")))
    assert not is_loaded(ToolResult(call_id="a", parts=(PICTURE,)))


def test_media_of_a_failed_result_follow_all_results_of_the_turn() -> None:
    calls = assistant(call("a"), call("b"))
    messages, kinds = settled(
        user("hi"), calls, tool(failed("a", Text(text="no"), PICTURE)), tool(result("b")), user("so")
    )
    assert kinds == ["media"]
    assert shown(messages)[3:] == [
        "failed:a",
        "result:b",
        'user:Attachment(s) of failed tool result "a":',
        "user:Media",
        "user:so",
    ]
    assert messages[2].parts[0].parts == (Text(text="no"),)  # type: ignore[union-attr] # it is a result
    assert PICTURE in messages[4].parts


def test_they_stand_before_what_the_user_says_in_the_same_message() -> None:
    mixed = user(failed("a", PICTURE), result("b"), "see?")
    messages, _ = settled(user("hi"), assistant(call("a"), call("b")), mixed)
    assert len(messages) == 3
    assert shown(messages[2:]) == [
        "failed:a",
        "result:b",
        'user:Attachment(s) of failed tool result "a":',
        "user:Media",
        "user:see?",
    ]
    assert messages[2].parts[0].parts == (Text(text=ATTACHED),)  # type: ignore[union-attr] # it is a result


def test_the_last_results_are_followed_by_them_too() -> None:
    messages, _ = settled(user("hi"), assistant(call("a")), tool(failed("a", PICTURE)))
    assert [message.role for message in messages] == ["user", "assistant", "tool", "user"]


def test_where_results_are_items_they_hold_what_they_like() -> None:
    history = (user("hi"), assistant(call("a")), tool(failed("a", PICTURE)))
    assert settled(*history, origin="responses") == (list(history), [])


def test_where_failures_may_hold_them_they_stay() -> None:
    history = (user("hi"), assistant(call("a")), tool(failed("a", Text(text="no"), PICTURE)))
    request = Request(model="m", messages=history, origin="messages")
    done = repair_history(request, Recipient(fails_in_words=False))
    assert (done.request is request, done.repairs) == (True, ())
    broken = replace(request, messages=(*history, tool(result("nobody"))))  # something else is mended there
    settled_too = repair_history(broken, Recipient(fails_in_words=False)).request.messages
    assert history[-1].parts[0] in [part for message in settled_too for part in message.parts]


THOUGHT = Reasoning(text="hm")
PAIR = (assistant(call("a")), tool(result("a")))


@pytest.mark.parametrize(
    "messages",
    [
        (user("hi"),),
        (user("hi"), *PAIR),
        (system("rules"), user("hi"), *PAIR, system("note"), assistant("ok"), user("more")),
        (user("hi"), assistant("see", call("a"), call("b")), user(result("a"), result("b"), "and this")),
        (user("hi"), assistant(call("a"), call("b")), tool(result("a")), tool(result("b")), *[user("x")] * 2),
        (user("hi"), assistant(THOUGHT, "yes")),
        (system(""), user("hi")),  # the client's own matter
        (system("only"),),
        (user("hi"), system(), assistant("yes")),  # it declares tools
        (user("hi"), Message(role="assistant", parts=(), extra={"chat": {"audio": {"id": "x"}}})),
    ],
)
def test_kept_rules(messages: tuple[Message, ...]) -> None:
    assert is_valid(messages, HistoryRules())


@pytest.mark.parametrize(
    "messages",
    [
        (assistant("hi"), user("you")),
        PAIR,
        (user("hi"), assistant(call("a"))),
        (user("hi"), tool(result("a"))),
        (user("hi"), *PAIR, *PAIR),
        (user("hi"), *PAIR, tool(result("a"))),
        (user("hi"), assistant(call("a"), "text"), tool(result("a"))),
        (user("hi"), assistant(call("a"), call("b")), tool(result("b")), tool(result("a"))),
        (user("hi"), assistant(call("a")), system("note"), tool(result("a"))),
        (user("hi"), assistant(call("a")), user("text", result("a"))),
        (user("hi"), assistant(call("a")), assistant(call("b")), tool(result("a")), tool(result("b"))),
        (user("hi"), assistant(call("")), tool(result(""))),
        (user("hi"), assistant(call("a", args=None)), tool(result("a"))),
        (user("hi"), assistant("", call("a")), tool(result("a"))),
        (user("hi"), assistant()),
        (user("hi"), assistant(" ")),
        (user("hi"), assistant(THOUGHT, " ")),
        (user("hi"), assistant(THOUGHT), user("x")),
        (user("hi"), assistant("yes", THOUGHT), user("x")),
        (user("hi"), assistant(result("a"))),
        (user("hi"), system(result("a"))),
        (user("hi"), system(" ")),
        (user(),),
        (user("hi", "")),
    ],
)
def test_broken_rules(messages: tuple[Message, ...]) -> None:
    assert not is_valid(messages if isinstance(messages, tuple) else (messages,), HistoryRules())


def test_a_run_of_items_is_one_turn() -> None:
    run = (user("hi"), assistant(THOUGHT), assistant(call("a")), assistant("see"), assistant(call("b")))
    assert is_valid((*run, tool(result("a")), tool(result("b"))), HistoryRules(is_run=True))
    assert not is_valid((*run, tool(result("a"))), HistoryRules(is_run=True))
    assert not is_valid((user("hi"), assistant(THOUGHT), user("x")), HistoryRules(is_run=True))
    approval = user(Opaque(dialect="responses", value={"type": "mcp_approval_request"}))
    assert is_valid((user("hi"), assistant(THOUGHT), approval), HistoryRules(is_run=True))


def test_two_calls_are_not_one_item() -> None:
    pair = (
        assistant(call("a", item_id="fc_1")),
        tool(result("a")),
        assistant(call("b", item_id="fc_1")),
        tool(result("b")),
    )
    assert not is_valid((user("hi"), *pair), HistoryRules(is_run=True))


def test_items_have_results_of_their_kind() -> None:
    assert answers(call("a"), result("a"))
    assert not answers(call("a", kind="custom"), result("a"))
    assert not answers(call("a"), result("a", kind="custom"))
    assert not answers(call("a", kind="typed"), result("a"))
    assert answers(call("a", "local_shell", kind="typed"), result("a"))  # seen from Codex
    custom = (user("hi"), assistant(call("a", kind="custom", args=None)), tool(result("a")))
    assert is_valid(custom, HistoryRules())
    assert not is_valid(custom, HistoryRules(is_run=True))


@pytest.mark.parametrize(
    "messages",
    [
        (user("hi"), assistant("The answer is ")),
        (user("hi"), assistant("The answer is\n"), system("note")),
        (user("hi"), assistant(call("a"), call("b")), user(result("a")), user(result("b"))),
        (user("hi"), assistant(call("a")), tool(ToolResult(call_id="a", parts=(PICTURE,), is_error=True))),
        (system(""),),
        (system("x"), system(" ")),
    ],
)
def test_rules_of_single_providers_hold_for_all(messages: tuple[Message, ...]) -> None:
    assert not is_valid(messages, HistoryRules())


def test_an_instruction_that_declares_tools_is_not_void() -> None:
    def told(content: Any) -> Message:
        return Message(role="system", parts=(), source=Source("messages", {"role": "system", "content": content}))

    assert is_void(told(""))
    assert is_void(told([]))
    assert not is_void(told([{"type": "tool_addition"}]))
    assert not is_void(system())
    assert not is_valid((user("hi"), told(""), assistant("yes")), HistoryRules())


def test_H076_who_signs_thoughts_wants_them_signed() -> None:
    signed, bare = Reasoning(text="hm", signature="s"), Reasoning(text="hm")
    assert unproven(assistant(signed, bare, Reasoning(text="", redacted="r")), False) == {1}
    assert unproven(assistant(bare, Reasoning(text="", encrypted="e")), True) == set()
    assert unproven(assistant(bare), True) == {0}
    history = (user("hi"), assistant(bare, "yes"))
    assert is_valid(history, HistoryRules())
    assert not is_valid(history, HistoryRules(needs_proof=True))


def test_H075_the_open_turn_begins_with_a_thought_or_not() -> None:
    signed = Reasoning(text="hm", signature="s")
    answered = tool(result("a"))
    assert not lacks_thought((user("hi"), assistant("yes"), user("so")), is_proven)
    assert lacks_thought((user("hi"), assistant(call("a")), answered), is_proven)
    assert lacks_thought((user("hi"), assistant("The answer is")), is_proven)
    assert lacks_thought((user("hi"), assistant(THOUGHT, call("a")), answered), is_proven)
    assert not lacks_thought((user("hi"), assistant(signed, call("a")), answered), is_proven)
    two = (user("hi"), assistant(signed, call("b")), tool(result("b")), assistant(call("a")), answered)
    assert not lacks_thought(two, is_proven)
    bare = (user("hi"), assistant(THOUGHT, call("a")), answered)
    assert not lacks_thought(bare, lambda part: isinstance(part, Reasoning))
    assert lacks_thought((user("hi"), assistant("so"), assistant(signed, call("a")), answered), is_proven)
    assert lacks_thought(
        (assistant(signed, "x"), user("hi"), assistant(call("a")), answered, system("note")), is_proven
    )


@pytest.mark.parametrize(
    ("messages", "is_formal", "is_free"),
    [
        ((assistant("hello, how can I help?"), user("hi")), False, True),
        ((user("hi"), assistant("so ")), False, True),
        (PAIR, False, False),
        ((assistant("hello"),), False, False),
        ((user("hi"), *PAIR), True, True),
    ],
)
def test_H096_who_must_begin_depends_on_who_reads(
    messages: tuple[Message, ...], is_formal: bool, is_free: bool
) -> None:
    assert is_valid(messages, HistoryRules()) is is_formal
    assert is_valid(messages, HistoryRules(is_formal=False)) is is_free
