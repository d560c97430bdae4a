"""The look that every request pays for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.calls.telling import assistant, call, result, system, tool, user
from toolwire.calls.ledger.rules import Asked, fits, is_proven, is_settled, is_void, lacks_thought, unproven
from toolwire.types import Media, Message, Opaque, Reasoning, Source, ToolResult

THOUGHT = Reasoning(text="hm")
PICTURE = Media(kind="image", url="https://example.com/a.png")
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
    assert is_settled(messages, Asked())


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
    assert not is_settled(messages if isinstance(messages, tuple) else (messages,), Asked())


def test_a_run_of_items_is_one_turn() -> None:
    run = (user("hi"), assistant(THOUGHT), assistant(call("a")), assistant("see"), assistant(call("b")))
    assert is_settled((*run, tool(result("a")), tool(result("b"))), Asked(is_run=True))
    assert not is_settled((*run, tool(result("a"))), Asked(is_run=True))
    assert not is_settled((user("hi"), assistant(THOUGHT), user("x")), Asked(is_run=True))
    approval = user(Opaque(dialect="responses", value={"type": "mcp_approval_request"}))
    assert is_settled((user("hi"), assistant(THOUGHT), approval), Asked(is_run=True))


def test_two_calls_are_not_one_item() -> None:
    pair = (
        assistant(call("a", item_id="fc_1")),
        tool(result("a")),
        assistant(call("b", item_id="fc_1")),
        tool(result("b")),
    )
    assert not is_settled((user("hi"), *pair), Asked(is_run=True))


def test_items_have_results_of_their_kind() -> None:
    assert fits(call("a"), result("a"))
    assert not fits(call("a", kind="custom"), result("a"))
    assert not fits(call("a"), result("a", kind="custom"))
    assert not fits(call("a", kind="typed"), result("a"))
    assert fits(call("a", "local_shell", kind="typed"), result("a"))  # seen from Codex
    custom = (user("hi"), assistant(call("a", kind="custom", args=None)), tool(result("a")))
    assert is_settled(custom, Asked())
    assert not is_settled(custom, Asked(is_run=True))


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
    assert not is_settled(messages, Asked())


def test_an_instruction_that_declares_tools_is_not_void() -> None:
    def told(content: Any) -> Message:
        return Message(role="system", parts=(), source=Source("messages", {"role": "system", "content": content}))

    assert is_void(told(""))
    assert is_void(told([]))
    assert not is_void(told([{"type": "tool_addition"}]))
    assert not is_void(system())
    assert not is_settled((user("hi"), told(""), assistant("yes")), Asked())


def test_H076_who_signs_thoughts_wants_them_signed() -> None:
    signed, bare = Reasoning(text="hm", signature="s"), Reasoning(text="hm")
    assert unproven(assistant(signed, bare, Reasoning(text="", redacted="r")), False) == {1}
    assert unproven(assistant(bare, Reasoning(text="", encrypted="e")), True) == set()
    assert unproven(assistant(bare), True) == {0}
    history = (user("hi"), assistant(bare, "yes"))
    assert is_settled(history, Asked())
    assert not is_settled(history, Asked(needs_proof=True))


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
    assert is_settled(messages, Asked()) is is_formal
    assert is_settled(messages, Asked(is_formal=False)) is is_free
