"""Who is asked before a tool changes something, what they see, and what they can say."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from toolwire.agent.events import ToolCallEvent
from toolwire.agent.toolbox import Decision
from toolwire.cli.chat.approvals import ApprovalPrompt, Approvals, PendingApproval, fault_of
from toolwire.cli.chat.terminal import Terminal, TypedLines
from toolwire.tools import Output
from toolwire.types import JsonObject, Tool

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOL = Tool(name="write", schema=SCHEMA)


class Write:
    tool = TOOL
    timeout = None

    def __init__(self, *, changes_things: bool = True) -> None:
        self.changes_things = changes_things

    async def run(self, arguments: JsonObject) -> Output:
        raise AssertionError("nobody runs it here")


class Typed(TypedLines):
    """Lines as if somebody had typed them; None is an end of input."""

    def __init__(self, *lines: str | None) -> None:
        super().__init__(None)
        self._waiting = list(lines)
        self.asked: list[tuple[str, str]] = []

    def ask(self, prompt: str, prefill: str = "") -> str:
        self.asked.append((prompt, prefill))
        line = self._waiting.pop(0)
        if line is None:
            raise EOFError
        return line


def event(**arguments: Any) -> ToolCallEvent:
    return ToolCallEvent(id="1", name="write", arguments=arguments or {"path": "a"})


def decided(*lines: str | None, call: ToolCallEvent | None = None) -> tuple[Decision, Typed, Approvals, str]:
    stream, typed, approvals = io.StringIO(), Typed(*lines), Approvals()
    decision = ApprovalPrompt(Terminal(stream), typed, approvals).decide(call or event(), TOOL)
    return decision, typed, approvals, stream.getvalue()


def asked(approvals: Approvals, write: Write) -> Decision | None:
    return asyncio.run(approvals.approve(event(), write))


def test_calls_that_need_no_approval() -> None:
    assert asked(Approvals(), Write(changes_things=False)) is None
    assert asked(Approvals(is_all_allowed=True), Write()) is None
    approvals = Approvals()
    approvals.always.add("write")
    assert asked(approvals, Write()) is None


def test_without_a_user_calls_are_denied() -> None:
    decision = asked(Approvals(), Write())
    assert decision is not None
    assert not decision.is_allowed
    assert "--yes" in decision.reason


def test_a_question_is_answered_from_another_thread() -> None:
    async def main() -> Decision | None:
        approvals = Approvals()

        def answer(question: PendingApproval) -> None:
            asyncio.get_running_loop().run_in_executor(None, question.answer, Decision(reason="fine"))

        approvals.ask = answer
        return await approvals.approve(event(), Write())

    assert asyncio.run(main()) == Decision(reason="fine")


def test_an_answer_that_comes_too_late_is_none() -> None:
    async def main() -> None:
        question = PendingApproval(event(), TOOL)
        waiting = asyncio.create_task(question.decision())
        await asyncio.sleep(0)
        waiting.cancel()
        question.answer(Decision())
        await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("y", Decision()),
        (" YES ", Decision()),
        ("n", Decision(is_allowed=False)),
        ("n  another file", Decision(is_allowed=False, reason="another file")),
        (None, Decision(is_allowed=False)),
    ],
)
def test_yes_and_no(line: str | None, decision: Decision) -> None:
    assert decided(line)[0] == decision


def test_nothing_but_a_clear_word_is_a_yes() -> None:
    decision, typed, _, shown = decided("", "ok", "yep", "n")
    assert not decision.is_allowed
    assert len(typed.asked) == 4
    assert shown.count("y: run it.") == 3


def test_always_is_for_this_tool() -> None:
    decision, _, approvals, _ = decided("a")
    assert decision == Decision()
    assert approvals.always == {"write"}


def test_edited_arguments_must_fit_the_tool() -> None:
    lines = ("e", '{"path": 7}', "e", "not json", "e", None, "e", '{"path": "b"}')
    decision, typed, _, shown = decided(*lines)
    assert decision == Decision(arguments={"path": "b"})
    assert typed.asked[1] == ("  arguments: ", '{"path":"a"}')
    assert shown.count("not changed: ") == 2


def test_what_is_edited_holds_no_controls() -> None:
    _, typed, _, _ = decided("e", "", "n", call=event(path="\x9b2J\u202e"))
    assert typed.asked[1][1] == '{"path":"\\u009b2J\\u202e"}'


def test_arguments_are_shown_so_that_they_cannot_pass_for_ours() -> None:
    call = event(path="a", **{"x\n  allow write? y": "one\ntwo\x1b[2J", "n": 3})
    shown = decided("n", call=call)[3]
    assert shown == "    path: a\n    x allow write? y:\n      | one\n      | two\\x1b[2J\n    n: 3\n"


def test_long_arguments_are_shown_whole_on_request() -> None:
    call = event(path="a", content="\n".join(f"line {number}" for number in range(100)), long="x" * 5000)
    brief = decided("n", call=call)[3]
    assert "line 17" in brief
    assert "line 99" not in brief
    assert "more lines; v shows all" in brief
    whole = decided("v", "n", call=call)[3]
    assert "line 99" in whole
    assert "x" * 5000 in whole
    assert "3006 more characters; v shows all" in decided("n", call=event(long="x" * 5000))[3]


def test_what_a_tool_does_not_take() -> None:
    assert fault_of({"path": "a"}, TOOL) == ""
    assert "path" in fault_of({"path": 7}, TOOL)
