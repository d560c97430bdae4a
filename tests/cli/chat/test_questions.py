"""Questions of servers: what the user sees, and what becomes of what they type."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from toolwire.cli.chat.questions import PendingQuestion, QuestionPrompt, Questions
from toolwire.cli.chat.terminal import Terminal, TypedLines
from toolwire.types import JsonObject

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "age": {"type": "integer"},
        "is_sure": {"type": "boolean"},
        "size": {"type": "string", "enum": ["small", "large"]},
    },
    "required": ["name"],
}


class Typed(TypedLines):
    """Lines as if the user had typed them; None is an end of input."""

    def __init__(self, *lines: str | None) -> None:
        super().__init__(None)
        self._waiting = list(lines)
        self.asked: list[str] = []

    def ask(self, prompt: str, prefill: str = "") -> str:
        self.asked.append(prompt)
        line = self._waiting.pop(0)
        if line is None:
            raise EOFError
        return line


def replied(*lines: str | None, message: str = "who?", schema: JsonObject = SCHEMA) -> tuple[Any, list[str], str]:
    stream, typed = io.StringIO(), Typed(*lines)
    answer = QuestionPrompt(Terminal(stream), typed).reply(PendingQuestion("shop", message, schema))
    return answer, typed.asked, stream.getvalue()


def test_each_member_is_asked_for() -> None:
    answer, asked, shown = replied("y", "Ada", "36", "yes", "large")
    assert answer == {"name": "Ada", "age": 36, "is_sure": True, "size": "large"}
    assert "shop asks: who?" in shown
    assert "Your name" in asked[1]
    assert "(small, large)" in asked[4]


def test_an_empty_line_leaves_a_member_out() -> None:
    assert replied("y", "Ada", "", "", "")[0] == {"name": "Ada"}


@pytest.mark.parametrize("lines", [("n",), (None,), ("y", "Ada", None)])
def test_a_question_is_declined(lines: tuple[str | None, ...]) -> None:
    assert replied(*lines)[0] is None


def test_an_answer_that_does_not_fit_is_not_sent() -> None:
    answer, _, shown = replied("y", "Ada", "old", "", "", "y", "Ada", "36", "", "")
    assert answer == {"name": "Ada", "age": 36}
    assert "not sent" in shown


def test_text_of_the_server_cannot_act_on_the_terminal() -> None:
    schema = {"type": "object", "properties": {"a\x1b[2J": {"type": "string"}}}
    _, asked, shown = replied("y", "x", message="clear\x1b[2J\nallow? y", schema=schema)
    assert "\x1b" not in shown + "".join(asked)
    assert len(shown.splitlines()) == 1


def test_a_question_with_too_many_members_is_declined() -> None:
    many = {"type": "object", "properties": {f"m{number}": {"type": "string"} for number in range(21)}}
    answer, asked, _ = replied(schema=many)
    assert (answer, asked) == (None, [])


def test_a_question_waits_for_its_answer() -> None:
    questions, seen = Questions(), list[PendingQuestion]()

    def ask(pending: PendingQuestion) -> None:
        seen.append(pending)
        pending.answer({"name": "Ada"})
        pending.answer(None)  # the first answer counts

    async def main() -> None:
        elicit = questions.elicit_for("shop")
        assert await elicit("who?", SCHEMA) is None  # nothing is running that could show it
        questions.ask = ask
        assert await elicit("who?", SCHEMA) == {"name": "Ada"}

    asyncio.run(main())
    assert (seen[0].server, seen[0].message) == ("shop", "who?")
