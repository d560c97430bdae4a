"""Questions of MCP servers to the user, which a server may ask while one of its tools runs.

As with approvals, a question goes one way through the session's queue, and the answer the other way through a future.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from ...types import JsonObject, Tool
from ...wire.exact_json import decode
from .approvals import fault_of
from .terminal import Terminal, TypedLines, one_line

_MAX_MEMBERS = 20
_MAX_SHOWN = 500  # characters of a text of the server


class PendingQuestion:
    """A question that waits for an answer from another thread; None declines it."""

    def __init__(self, server: str, message: str, schema: JsonObject) -> None:
        self.server = server
        self.message = message
        self.schema = schema
        self._answer: Future[JsonObject | None] = Future()

    async def value(self) -> JsonObject | None:
        return await asyncio.wrap_future(self._answer)

    def answer(self, value: JsonObject | None) -> None:
        with suppress(InvalidStateError):  # the call was interrupted
            self._answer.set_result(value)


class Questions:
    """ask hands a question to the user, None while no answer is running."""

    def __init__(self) -> None:
        self.ask: Callable[[PendingQuestion], None] | None = None

    def elicit_for(self, server: str) -> Callable[[str, JsonObject], Awaitable[JsonObject | None]]:
        async def elicit(message: str, schema: JsonObject) -> JsonObject | None:
            if self.ask is None:
                return None
            pending = PendingQuestion(server, message, schema)
            self.ask(pending)
            return await pending.value()

        return elicit


class QuestionPrompt:
    """Asks the user at a terminal, one line for each member of the answer."""

    def __init__(self, terminal: Terminal, lines: TypedLines) -> None:
        self._terminal = terminal
        self._lines = lines

    def reply(self, question: PendingQuestion) -> JsonObject | None:
        """Raises KeyboardInterrupt; end of input declines."""
        members = question.schema.get("properties")
        members = members if isinstance(members, dict) else {}
        self._terminal.line(f"  {one_line(question.server)} asks: {_shown(question.message)}")
        if len(members) > _MAX_MEMBERS:
            self._terminal.line(f"  declined: it asks for {len(members)} values at once.", "red")
            return None
        try:
            while self._lines.ask("  answer it? [y/n] ").strip().lower() in ("y", "yes"):
                answer = {
                    name: value for name, member in members.items() if (value := self._member(name, member)) is not None
                }
                fault = fault_of(answer, Tool(name="answer", schema={"type": "object", **question.schema}))
                if not fault:
                    return answer
                self._terminal.line(f"  not sent: {fault}.", "red")
        except EOFError:
            self._terminal.line()
        return None

    def _member(self, name: str, member: Any) -> Any:
        """None if the user types nothing."""
        schema = member if isinstance(member, dict) else {}
        about = " ".join(str(schema[key]) for key in ("title", "description") if schema.get(key))
        options = f" ({', '.join(map(str, schema['enum']))})" if isinstance(schema.get("enum"), list) else ""
        typed = self._lines.ask(f"  {_shown(name)}{_shown(options)}{': ' + _shown(about) if about else ''}> ").strip()
        if not typed:
            return None
        if schema.get("type") in ("boolean", "integer", "number", "array"):
            with suppress(ValueError):
                return decode({"yes": "true", "no": "false"}.get(typed.lower(), typed))
        return typed


def _shown(text: str) -> str:
    """Text of the server, in one line that cannot act on the terminal."""
    return one_line(text[:_MAX_SHOWN])
