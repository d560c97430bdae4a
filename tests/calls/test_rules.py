"""The look that every request pays for."""

from __future__ import annotations

import pytest

from tests.calls.telling import assistant, call, result, system, tool, user
from toolwire.calls.rules import fits, is_settled
from toolwire.types import Message, Opaque, Reasoning

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
    assert is_settled(messages, False)


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
    assert not is_settled(messages if isinstance(messages, tuple) else (messages,), False)


def test_a_run_of_items_is_one_turn() -> None:
    run = (user("hi"), assistant(THOUGHT), assistant(call("a")), assistant("see"), assistant(call("b")))
    assert is_settled((*run, tool(result("a")), tool(result("b"))), True)
    assert not is_settled((*run, tool(result("a"))), True)
    assert not is_settled((user("hi"), assistant(THOUGHT), user("x")), True)
    approval = user(Opaque(dialect="responses", value={"type": "mcp_approval_request"}))
    assert is_settled((user("hi"), assistant(THOUGHT), approval), True)


def test_two_calls_are_not_one_item() -> None:
    pair = (
        assistant(call("a", item_id="fc_1")),
        tool(result("a")),
        assistant(call("b", item_id="fc_1")),
        tool(result("b")),
    )
    assert not is_settled((user("hi"), *pair), True)


def test_items_have_results_of_their_kind() -> None:
    assert fits(call("a"), result("a"))
    assert not fits(call("a", kind="custom"), result("a"))
    assert not fits(call("a"), result("a", kind="custom"))
    assert fits(call("a", kind="typed"), result("a"))  # seen from Codex, for its shell
    custom = (user("hi"), assistant(call("a", kind="custom", args=None)), tool(result("a")))
    assert is_settled(custom, False)
    assert not is_settled(custom, True)
