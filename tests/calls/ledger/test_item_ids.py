"""Ids of items: one each, and none that asks for a lost thought."""

from __future__ import annotations

import pytest

from tests.calls.telling import assistant, call, result, settled, tool, user
from toolwire.calls.ledger.item_ids import has_copies, has_lost, item_id, thoughtless
from toolwire.calls.ledger.repair import Reader, settle
from toolwire.calls.ledger.report import Placed
from toolwire.types import Message, Opaque, Reasoning, Request, Source, State, Text, Thinking, ToolCall

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
    first = settle(request, Reader(is_strict=True))
    assert settle(first.request, Reader(is_strict=True)).request is first.request
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


def test_a_typed_call_that_loses_its_id_is_told_as_a_function() -> None:
    typed = item(call("x", "shell", item_id="sh_1", kind="typed"))
    messages, _ = strictly(user("hi"), typed, tool(result("x", kind="typed")), thought("rs_1"), said("a"))
    part = messages[1].parts[0]
    assert isinstance(part, ToolCall)
    assert (part.kind, part.item_id, messages[1].source) == ("function", "", None)
    assert messages[2].parts[0].kind == "function"  # type: ignore[union-attr] # it is a result


def test_a_turn_of_assistants_alone_is_left_to_other_dialects() -> None:
    assert settled(user("hi"), assistant("a"), assistant("b"))[1] == []
