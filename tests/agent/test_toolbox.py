"""The calls of one answer: validation, approval, and a result for each."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.agent_harness import pairs
from toolwire.agent.events import ApprovalEvent, LoopEvent, StatusEvent, ToolCallEvent, ToolErrorEvent, ToolResultEvent
from toolwire.agent.toolbox import Approve, Calls, Decision, Toolbox
from toolwire.tools import Runnable
from toolwire.tools.context import current
from toolwire.tools.functions import function_tool
from toolwire.tools.runner import Bounds
from toolwire.types import Part, Text, ToolCall, ToolResult
from toolwire.wire.exact_json import object_of


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


def call(raw: str, name: str = "double", call_id: str = "c1", **more: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, raw=raw, args=object_of(raw), **more)


def told(*parts: Part, approve: Approve | None = None, is_cut: bool = False) -> tuple[list[LoopEvent], Calls, Toolbox]:
    toolbox = Toolbox([function_tool(double)], Bounds(), approve)

    async def main() -> tuple[list[LoopEvent], Calls]:
        calls = toolbox.begin(parts, is_cut=is_cut)
        return [event async for event in calls.events()], calls

    return *asyncio.run(main()), toolbox


def types(events: list[LoopEvent]) -> list[str]:
    return [str(event.__struct_config__.tag) for event in events]


def result_of(calls: Calls) -> ToolResult:
    (found,) = [part for message in calls.messages() for part in message.parts if isinstance(part, ToolResult)]
    return found


def test_a_valid_call_runs() -> None:
    events, calls, toolbox = told(Text(text="So:"), call('{"number": 4}'))
    assert types(events) == ["tool_call", "tool_result"]
    assert calls.has_valid
    assert [message.role for message in calls.messages()] == ["assistant", "tool"]
    assert pairs(calls.messages()) == [("c1", "8")]
    assert result_of(calls).name == "double"
    assert (toolbox.tally.made, toolbox.tally.invalid) == (1, 0)


def test_text_alone_needs_no_structured_content() -> None:
    events, calls, _ = told(Text(text="Hello."))
    assert events == []
    assert not calls.has_valid
    assert [message.role for message in calls.messages()] == ["assistant"]


def test_H023_a_repaired_call_stands_in_the_conversation_as_it_was_made() -> None:
    events, calls, _ = told(call('{"number": "4"}'))
    (made,) = [event for event in events if isinstance(event, ToolCallEvent)]
    assert made.arguments == {"number": 4}
    assert made.repairs
    assert made.raw == '{"number": "4"}'
    assert calls.messages()[0].parts == (call('{"number":4}'),)


@pytest.mark.parametrize("raw", ['{"number": "many"}', "{}", "no json"])
def test_an_invalid_call_gets_the_reason(raw: str) -> None:
    events, calls, toolbox = told(call(raw))
    (event,) = events
    assert isinstance(event, ToolErrorEvent)
    assert event.kind == "invalid"
    assert "Call double again" in event.message
    told_to_model = json.loads(event.message)
    assert list(event.missing) == told_to_model["missing"] == (["number"] if raw == "{}" else [])
    assert list(event.validation_errors) == told_to_model["validation_errors"] != []
    assert event.received == told_to_model["received"]
    assert not calls.has_valid
    assert result_of(calls).is_error
    assert toolbox.tally.invalid == 1


@pytest.mark.parametrize("kind", ["function", "custom", "typed"])
def test_an_unknown_call_of_any_kind_has_a_result_of_its_kind(kind: Any) -> None:
    events, calls, _ = told(call("{}", "shell", kind=kind))
    (event,) = events
    assert isinstance(event, ToolErrorEvent)
    assert event.kind == "unknown"
    assert result_of(calls).kind == kind


def test_another_spelling_of_a_name_is_understood() -> None:
    events, calls, _ = told(call('{"number": 4}', "functions.double"))
    assert types(events) == ["tool_call", "tool_result"]
    assert pairs(calls.messages()) == [("c1", "8")]


def test_a_cut_call_is_not_made() -> None:
    events, _, _ = told(call('{"number": 4'), is_cut=True)
    (event,) = events
    assert isinstance(event, ToolErrorEvent)
    assert "ended in the middle" in event.message


async def _allow_later(event: ToolCallEvent, tool: Runnable) -> Decision:
    await asyncio.sleep(0)
    return Decision()


@pytest.mark.parametrize("approve", [_allow_later, lambda event, tool: True, lambda event, tool: Decision()])
def test_allowed(approve: Approve) -> None:
    events, _, _ = told(call('{"number": 4}'), approve=approve)
    assert types(events) == ["tool_call", "approval", "tool_result"]
    assert events[1] == ApprovalEvent(id="c1", name="double", arguments={"number": 4}, is_allowed=True)


def test_none_means_that_no_approval_is_needed() -> None:
    events, _, _ = told(call('{"number": 4}'), approve=lambda event, tool: None)
    assert types(events) == ["tool_call", "tool_result"]


@pytest.mark.parametrize("said", [False, Decision(is_allowed=False), Decision(is_allowed=False, reason="Too dear.")])
def test_a_denied_call_is_reported_as_denied(said: bool | Decision) -> None:
    events, calls, _ = told(call('{"number": 4}'), approve=lambda event, tool: said)
    assert types(events) == ["tool_call", "approval", "tool_error"]
    event = events[-1]
    assert isinstance(event, ToolErrorEvent)
    assert event.kind == "denied"
    assert event.message.startswith("Denied: the user did not allow this call, and it was not made.")
    assert event.message.endswith(said.reason if isinstance(said, Decision) else ".")
    assert pairs(calls.messages()) == [("c1", event.message)]


def test_one_may_be_denied_and_another_run() -> None:
    def approve(event: ToolCallEvent, tool: Runnable) -> bool:
        return event.arguments["number"] > 3

    events, calls, _ = told(call('{"number": 3}'), call('{"number": 4}', call_id="c2"), approve=approve)
    assert types(events) == ["tool_call", "approval", "tool_error", "tool_call", "approval", "tool_result"]
    assert pairs(calls.messages())[1] == ("c2", "8")


def test_edited_arguments_run() -> None:
    events, calls, _ = told(call('{"number": 4}'), approve=lambda event, tool: Decision(arguments={"number": 5}))
    assert pairs(calls.messages()) == [("c1", "10")]
    assert calls.messages()[0].parts == (call('{"number":5}'),)
    assert isinstance(events[-1], ToolResultEvent)


def test_edited_arguments_must_fit_too() -> None:
    events, calls, _ = told(call('{"number": 4}'), approve=lambda event, tool: Decision(arguments={"number": "many"}))
    assert types(events) == ["tool_call", "approval", "tool_error"]
    assert isinstance(events[-1], ToolErrorEvent)
    assert events[-1].kind == "invalid"
    assert result_of(calls).is_error


def test_the_hook_sees_the_tool() -> None:
    seen: list[Any] = []
    told(call('{"number": 4}'), approve=lambda event, tool: seen.append((event.name, tool.changes_things)))  # type: ignore[func-returns-value] # None: needs no approval
    assert seen == [("double", True)]


def test_progress_is_a_status() -> None:
    def work() -> str:
        current().progress("reading", done=3, total=10)
        current().progress("still")
        current().progress(done=4)
        return "ok"

    async def main() -> list[LoopEvent]:
        calls = Toolbox([function_tool(work)], Bounds()).begin([call("{}", "work")], is_cut=False)
        return [event async for event in calls.events()]

    said = [event for event in asyncio.run(main()) if isinstance(event, StatusEvent)]
    assert [(event.status, event.detail, event.id) for event in said] == [
        ("running", "3/10 reading", "c1"),
        ("running", "still", "c1"),
        ("running", "4", "c1"),
    ]
