"""Answers one after the other: whatever stops one, the conversation can go on."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import pytest

from tests.cli.chat.stage import Kept, session
from toolwire.agent import Conversation
from toolwire.agent.events import CompleteEvent, ErrorEvent, LoopEvent, TextEvent, ToolCallEvent, ToolResultEvent
from toolwire.agent.toolbox import Decision
from toolwire.cli.chat.questions import PendingQuestion, Questions
from toolwire.cli.chat.session import load_conversation, on_interrupt, raise_interrupts, with_note
from toolwire.errors import ConfigError
from toolwire.types import JsonObject, Message, Text, Tool, ToolCall, ToolResult

CALLS = [{"name": "look", "arguments": {"where": "here"}}, {"name": "look", "arguments": {"where": "there"}}]
TURNS = [
    {"text": "Let me look.", "calls": CALLS, "pace": 0.004, "chunk": 4},
    {"text": "There it is.", "pace": 0.004, "chunk": 4},
    {"text": "Going on."},
]


async def look(where: str) -> str:
    """Looks."""
    await asyncio.sleep(0.01)
    return f"nothing {where}"


def is_paired(conversation: Conversation) -> bool:
    parts = [part for message in conversation.messages for part in message.parts]
    calls = [part.id for part in parts if isinstance(part, ToolCall)]
    return calls == [part.call_id for part in parts if isinstance(part, ToolResult)]


def test_answers_and_what_they_took(tmp_path: Path) -> None:
    kept = Kept()
    with session(tmp_path, TURNS, tools=[look], reporter=kept, is_all_allowed=True) as talk:
        assert talk.answer("look") == "done"
        assert talk.answer("and?") == "done"
        assert (talk.totals.answers, talk.totals.calls) == (2, 2)
        assert talk.totals.usage.output > 0
        assert len(talk.conversation.messages) == 7
    assert [type(event) for event in kept.events].count(CompleteEvent) == 2
    assert "".join(event.text for event in kept.events if isinstance(event, TextEvent)).endswith("Going on.")


@pytest.mark.parametrize("place", range(0, 24, 2))
def test_an_interrupt_at_any_event_leaves_a_valid_conversation(place: int, tmp_path: Path) -> None:
    def interrupt(event: LoopEvent) -> None:
        if len(kept.events) == place + 1:
            signal.raise_signal(signal.SIGINT)

    kept = Kept(interrupt)
    with session(tmp_path, TURNS, tools=[look], reporter=kept, is_all_allowed=True, save=tmp_path / "kept") as talk:
        ending = talk.answer("look")
        assert ending in ("interrupted", "done")
        assert isinstance(kept.events[-1], CompleteEvent)
        assert is_paired(talk.conversation)
        assert load_conversation(tmp_path / "kept") == talk.conversation
        kept.events.clear()
        kept._on_event = lambda event: None
        assert talk.answer("go on") == "done"
    last = kept.events[-1]
    assert isinstance(last, CompleteEvent)
    assert last.text in ("There it is.", "Going on.")


def test_a_back_end_that_takes_its_time_is_not_waited_for(tmp_path: Path) -> None:
    kept = Kept(lambda event: signal.raise_signal(signal.SIGINT) if len(kept.events) == 1 else None)
    with session(tmp_path, [{"text": "Late.", "delay": 30}], reporter=kept) as talk:
        assert talk.answer("hi") == "interrupted"
        assert [message.role for message in talk.conversation.messages] == ["user", "user"]


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_a_second_interrupt_exits_if_the_answer_does_not_stop(patience: float, tmp_path: Path) -> None:
    async def stubborn() -> str:
        """Does not want to stop at once."""
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            await asyncio.sleep(0.3)
            raise
        return ""

    def interrupt(event: LoopEvent) -> None:
        if isinstance(event, ToolCallEvent):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    turns = [{"calls": [{"name": "stubborn", "arguments": {}}]}]
    with session(tmp_path, turns, tools=[stubborn], reporter=Kept(interrupt), is_all_allowed=True) as talk:
        talk.patience = patience
        if patience:
            assert talk.answer("go") == "interrupted"
        else:
            with pytest.raises(KeyboardInterrupt):
                talk.answer("go")


def test_an_answer_that_does_not_stop_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stubborn() -> str:
        """Does not want to stop at once."""
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            await asyncio.sleep(0.3)
            raise
        return ""

    monkeypatch.setattr("toolwire.cli.chat.session._TICK", 0.01)
    kept = Kept(lambda event: signal.raise_signal(signal.SIGINT) if isinstance(event, ToolCallEvent) else None)
    turns = [{"calls": [{"name": "stubborn", "arguments": {}}]}]
    with session(tmp_path, turns, tools=[stubborn], reporter=kept, is_all_allowed=True) as talk:
        talk.patience = 0.05
        assert talk.answer("go") == "interrupted"
    assert kept.notes == ["the answer does not stop; Ctrl-C exits"]


def test_approvals_are_decided_in_the_main_thread(tmp_path: Path) -> None:
    asked = list[str]()

    def decide(event: ToolCallEvent, tool: Tool, change: object) -> Decision:
        asked.append(event.arguments["where"])
        return Decision(is_allowed=len(asked) == 1)

    kept = Kept()
    with session(tmp_path, TURNS, tools=[look], reporter=kept, decide=decide) as talk:
        assert talk.answer("look") == "done"
    assert asked == ["here", "there"]
    assert [event.text for event in kept.events if isinstance(event, ToolResultEvent)] == ["nothing here"]


@pytest.mark.parametrize("has_user", [True, False])
def test_questions_of_servers_are_answered_in_the_main_thread(tmp_path: Path, has_user: bool) -> None:
    questions, threads = Questions(), list[str]()
    elicit = questions.elicit_for("shop")

    async def look(where: str) -> str:
        """Asks."""
        return str(await elicit(f"what is {where}?", {}))

    def reply(question: PendingQuestion) -> JsonObject | None:
        threads.append(threading.current_thread().name)
        return {"answer": question.message}

    kept, who = Kept(), reply if has_user else None
    with session(
        tmp_path, TURNS, tools=[look], reporter=kept, is_all_allowed=True, questions=questions, reply=who
    ) as talk:
        assert talk.answer("look") == "done"
    results = [event.text for event in kept.events if isinstance(event, ToolResultEvent)]
    assert results == (["{'answer': 'what is here?'}", "{'answer': 'what is there?'}"] if has_user else ["None"] * 2)
    assert threads == ["MainThread"] * (2 if has_user else 0)


def test_ctrl_c_at_a_question_stops_the_answer(tmp_path: Path) -> None:
    def decide(event: ToolCallEvent, tool: Tool, change: object) -> Decision:
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("the signal comes first")

    with session(tmp_path, TURNS, tools=[look], decide=decide) as talk:
        assert talk.answer("look") == "interrupted"
        assert is_paired(talk.conversation)


def test_a_failed_request_does_not_end_the_session(tmp_path: Path) -> None:
    kept = Kept()
    with session(tmp_path, TURNS, tools=[look, look], reporter=kept) as talk:
        assert talk.answer("look") == "error"
    assert isinstance(kept.events[0], ErrorEvent)
    assert "several tools of one name" in kept.events[0].message


def test_a_conversation_that_cannot_be_saved_is_an_error(tmp_path: Path) -> None:
    with session(tmp_path, TURNS) as talk, pytest.raises(ConfigError, match="cannot be saved"):
        talk.save(tmp_path / "no" / "folder")


def test_a_conversation_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_conversation(tmp_path / "nowhere")
    (tmp_path / "wrong").write_text('{"version": 99}')
    with pytest.raises(ConfigError, match="version 99"):
        load_conversation(tmp_path / "wrong")


def test_what_says_that_it_was_stopped() -> None:
    asked = Message(role="user", parts=(Text(text="hi"),))
    result = Message(role="tool", parts=(ToolResult(call_id="1", parts=()),))
    assert with_note(Conversation()) == Conversation()
    assert len(with_note(Conversation(messages=(asked,))).messages) == 2
    assert len(with_note(Conversation(messages=(asked, result))).messages) == 2


def test_a_message_while_an_answer_is_under_way() -> None:
    told = list[str]()
    before = signal.getsignal(signal.SIGINT)
    with on_interrupt(lambda: told.append("stop")):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert told == ["stop", "stop"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_exception_while_a_person_types() -> None:
    with on_interrupt(lambda: None):
        inside = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), raise_interrupts():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is inside
