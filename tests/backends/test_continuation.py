"""Whether a request only answers the calls of the last turn."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from toolwire.backends.continuation import answered_calls, continuation, resume_point, resume_point_after
from toolwire.types import (
    Media,
    Message,
    OutputFormat,
    Part,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

LOOK = Tool(name="look", schema={"type": "object"})
ASKED = (
    Message(role="system", parts=(Text(text="It is noon."),), is_head=True),
    Message(role="user", parts=(Text(text="Look twice."), Media(kind="image", data="AAAA"))),
)
CALLS = (ToolCall(id="call_1", name="look", raw='{"at": 1.0}'), ToolCall(id="call_2", name="look", raw=""))
REQUEST = Request(model="m", messages=ASKED, tools=(LOOK,))


def result(call_id: str, text: str = "seen") -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text=text),))


def turn(*parts: Part) -> Message:
    return Message(role="assistant", parts=parts)


def tool(*parts: Part) -> Message:
    return Message(role="tool", parts=parts)


RETURNED = (
    *ASKED,
    turn(Text(text="I look."), *CALLS),
    tool(result("call_2")),
    tool(result("call_1", "first")),
)


def test_results_come_in_the_order_of_the_calls() -> None:
    found = continuation(RETURNED)
    assert found is not None
    assert [part.call_id for part in found.results] == ["call_1", "call_2"]
    assert (found.start, found.calls) == (2, CALLS)


@pytest.mark.parametrize(
    "messages",
    [
        (),
        ASKED,
        RETURNED[:3],
        RETURNED[:4],  # one result is missing
        (*RETURNED, tool(result("call_3"))),
        (*RETURNED, tool(result("call_1"))),
        (*RETURNED, Message(role="user", parts=(Text(text="And?"),))),
        (*RETURNED[:4], Message(role="user", parts=(result("call_1"), Text(text="And?")))),
        (*ASKED, turn(Text(text="No calls.")), tool(result("call_1"))),
        (*ASKED, tool(result("call_1"))),
        (*ASKED, turn(*CALLS), tool(result("call_1"), result("other"))),
        (*ASKED, turn(CALLS[0], CALLS[0]), tool(result("call_1"), result("call_1"))),
        (*RETURNED, Message(role="user", parts=())),
    ],
)
def test_anything_else_at_the_end_is_no_continuation(messages: tuple[Message, ...]) -> None:
    assert continuation(messages) is None
    assert resume_point(replace(REQUEST, messages=messages)) is None


def test_a_turn_of_several_messages_is_one_turn() -> None:
    spread = (*ASKED, turn(CALLS[0]), turn(CALLS[1]), Message(role="user", parts=(result("call_1"), result("call_2"))))
    found = continuation(spread)
    assert found is not None
    assert (found.start, found.calls) == (2, CALLS)


def place(messages: tuple[Message, ...] = RETURNED, request: Request = REQUEST) -> object:
    found = resume_point(replace(request, messages=messages))
    assert found is not None
    return found[0]


def test_the_request_finds_the_place_of_the_turn() -> None:
    assert place() == resume_point_after(REQUEST, CALLS)
    mine = replace(REQUEST, owner="me")
    assert place(request=mine) == resume_point_after(mine, CALLS) != resume_point_after(REQUEST, CALLS)


@pytest.mark.parametrize(
    "messages",
    [
        (ASKED[0], ASKED[1], turn(CALLS[1], CALLS[0]), *RETURNED[3:]),
        (ASKED[0], ASKED[1], turn(Reasoning(text="Hm."), *CALLS), *RETURNED[3:]),
        (Message(role="system", parts=(Text(text="It is one."),)), *RETURNED[1:]),
        (
            *ASKED,
            turn(replace(CALLS[0], raw='{"at":1}', args={"at": Decimal("1.0")}), replace(CALLS[1], args={})),
            *RETURNED[3:],
        ),
        (*ASKED, turn(replace(CALLS[0], item_id="fc_1"), replace(CALLS[1], raw="{}")), *RETURNED[3:]),
    ],
)
def test_what_clients_do_unasked_is_no_edit(messages: tuple[Message, ...]) -> None:
    assert place(messages) == resume_point_after(REQUEST, CALLS)


@pytest.mark.parametrize(
    "messages",
    [
        (ASKED[0], Message(role="user", parts=(Text(text="Look once."),)), *RETURNED[2:]),
        (ASKED[0], Message(role="user", parts=ASKED[1].parts[:1]), *RETURNED[2:]),
        (ASKED[0], Message(role="user", parts=(ASKED[1].parts[0], Media(kind="image", data="BBBB"))), *RETURNED[2:]),
        (*ASKED, Message(role="user", parts=(Text(text="Well?"),)), *RETURNED[2:]),
        (*ASKED, turn(replace(CALLS[0], raw='{"at": 2}'), CALLS[1]), *RETURNED[3:]),
        (*ASKED, turn(replace(CALLS[0], name="glance"), CALLS[1]), *RETURNED[3:]),
    ],
)
def test_an_edit_leads_elsewhere(messages: tuple[Message, ...]) -> None:
    assert place(messages) != resume_point_after(REQUEST, CALLS)


def test_other_tools_or_another_model_lead_elsewhere() -> None:
    known = resume_point_after(REQUEST, CALLS)
    assert place(request=replace(REQUEST, model="other")) != known
    assert place(request=replace(REQUEST, tools=())) != known
    assert place(request=replace(REQUEST, tools=(replace(LOOK, schema={"type": "object", "required": []}),))) != known
    assert place(request=replace(REQUEST, tools=(replace(LOOK, description="Looks."),))) != known


def test_edits_of_earlier_rounds_count() -> None:
    again = ToolCall(id="call_3", name="look", raw="{}")
    then = (*RETURNED, turn(again), tool(result("call_3")))
    known = resume_point_after(replace(REQUEST, messages=RETURNED), (again,))
    assert place(then) == known
    edited = (*RETURNED[:4], tool(result("call_1", "other")), *then[5:])
    assert place(edited) != known
    failed = (*RETURNED[:4], tool(replace(result("call_1", "first"), is_error=True)), *then[5:])
    assert place(failed) != known


@pytest.mark.parametrize(
    "changed",
    [
        {"tool_choice": ToolChoice(mode="none")},
        {"tool_choice": ToolChoice(mode="named", names=("look",))},
        {"tool_choice": ToolChoice(mode="allowed", names=("look",))},
        {"output": OutputFormat(format="schema", schema={"type": "object"})},
    ],
)
def test_what_a_turn_was_begun_with_cannot_be_changed_in_the_middle(changed: dict[str, Any]) -> None:
    assert place(request=replace(REQUEST, **changed)) != resume_point_after(REQUEST, CALLS)
    assert place(request=replace(REQUEST, **changed)) == resume_point_after(replace(REQUEST, **changed), CALLS)


def test_whether_a_call_is_wanted_is_not_what_it_was_begun_with() -> None:
    modes: tuple[Literal["auto", "required"], ...] = ("auto", "required")
    for mode in modes:
        assert place(request=replace(REQUEST, tool_choice=ToolChoice(mode=mode))) == resume_point_after(REQUEST, CALLS)


def test_instructions_behind_the_results_do_not_part_them_from_their_turn() -> None:
    """A client tells how many tokens are left, after every result."""
    calls = (ToolCall(id="call_1", name="read", raw="{}"),)
    asked = Message(role="user", parts=(Text(text="hi"),))
    said = Message(role="assistant", parts=calls)
    result = Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="x"),)),))
    left = Message(role="system", parts=(Text(text="<total_tokens>1000 left</total_tokens>"),))
    first = Request(model="m", messages=(asked,))
    found = resume_point(Request(model="m", messages=(asked, said, result, left)))
    assert found is not None
    assert found[0] == resume_point_after(first, calls)
    assert [loss.where for loss in found[1].losses] == ["messages[3]"]


def test_a_note_of_the_gateway_is_no_ground() -> None:
    """A correction stands between the client's request and the answer that the client sees."""
    wrong, right = ToolCall(id="call_1", name="read", raw="["), ToolCall(id="call_2", name="read", raw="{}")
    asked = Message(role="user", parts=(Text(text="hi"),))
    corrected = (
        Message(role="assistant", parts=(wrong,)),
        Message(role="tool", parts=(ToolResult(call_id="call_1", parts=(Text(text="no JSON"),), is_error=True),)),
    )
    place = resume_point_after(Request(model="m", messages=(asked, *corrected), unseen=2), (right,))
    answered = Message(role="tool", parts=(ToolResult(call_id="call_2", parts=(Text(text="x"),)),))
    found = resume_point(Request(model="m", messages=(asked, Message(role="assistant", parts=(right,)), answered)))
    assert found is not None
    assert found[0] == place


def test_calls_that_are_answered_here_by_unique_ids() -> None:
    calls = tuple(ToolCall(id=call_id, name="read", raw="{}") for call_id in ("call_8f3kq0x2m1", "call_0"))
    results = tuple(ToolResult(call_id=call.id, parts=()) for call in calls)
    request = Request(model="m", messages=(Message(role="assistant", parts=calls), Message(role="tool", parts=results)))
    assert answered_calls(request) == ["call_8f3kq0x2m1"]
