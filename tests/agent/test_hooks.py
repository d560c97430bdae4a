"""Hooks see and change a task."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.agent_harness import IN_PROCESS, MODEL, Weather, calls, pairs, script
from toolwire import (
    Agent,
    AgentHooks,
    CompleteEvent,
    Conversation,
    Decision,
    Message,
    Output,
    Request,
    Runnable,
    Text,
    ToolCallEvent,
    Usage,
)

PROMPT = script(calls(("weather", {"city": "Rome"})), {"text": "So: {{result:0}}"})


class Journal(AgentHooks):
    """Ordinary and asynchronous methods."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def before_request(self, request: Request) -> None:
        self.lines.append(f"request with {len(request.messages)}")

    def after_answer(self, message: Message, usage: Usage) -> None:
        self.lines.append(f"answer with {len(message.parts)}, {usage.output > 0}")

    def before_call(self, call: ToolCallEvent, tool: Runnable) -> None:
        self.lines.append(f"call {call.name} of {tool.tool.name}")

    async def after_call(self, call: ToolCallEvent, output: Output) -> Output:
        self.lines.append(f"output of {call.arguments['city']}")
        return Output.of_text("[redacted]")

    def after_task(self, complete: CompleteEvent) -> None:
        self.lines.append(complete.reason)


def agent(hooks: AgentHooks, **more: Any) -> Agent:
    return Agent(MODEL, Weather().tools, config=IN_PROCESS, hooks=hooks, **more)


def test_every_hook_in_order() -> None:
    journal = Journal()
    result = agent(journal).run_sync(PROMPT)
    assert result.text == "So: [redacted]"
    assert journal.lines == [
        "request with 1",
        "answer with 1, True",
        "call weather of weather",
        "output of Rome",
        "request with 3",
        "answer with 1, True",
        "done",
    ]


def test_a_changed_request_is_sent_once() -> None:
    class Reminder(AgentHooks):
        def before_request(self, request: Request) -> Request:
            note = Message(role="system", parts=(Text(text="Be brief."),))
            return replace(request, messages=(note, *request.messages))

    result = agent(Reminder()).run_sync(script({"echo": True}))
    assert "Be brief." in result.text
    assert [message.role for message in result.conversation.messages] == ["user", "assistant"]


def test_a_hook_decides_before_approve() -> None:
    class Denial(AgentHooks):
        async def before_call(self, call: ToolCallEvent, tool: Runnable) -> Decision | None:
            return Decision(is_allowed=False, reason="Not here.") if call.arguments["city"] == "Rome" else None

    asked: list[str] = []

    def approve(call: ToolCallEvent, tool: Runnable) -> bool:
        asked.append(call.arguments["city"])
        return True

    prompt = script(calls(("weather", {"city": "Rome"}), ("weather", {"city": "Bern"})), {"text": "{{result:0}}"})
    result = agent(Denial(), approve=approve).run_sync(prompt)
    assert result.text.endswith("Not here.")
    assert asked == ["Bern"]


def test_an_exception_of_a_hook_is_raised_and_the_conversation_valid() -> None:
    class Broken(AgentHooks):
        def after_call(self, call: ToolCallEvent, output: Output) -> None:
            raise ZeroDivisionError

    stored: list[Conversation] = []
    with pytest.raises(ZeroDivisionError):
        agent(Broken()).run_sync(PROMPT, None, stored.append)
    assert len(pairs(stored[0].messages)) == 1
