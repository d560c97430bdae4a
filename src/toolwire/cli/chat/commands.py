"""What can be typed beside questions: lines that begin with a slash."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ...agent import Conversation
from ...agent.agent import AnyTool, runnables_of
from ...errors import GatewayError
from ...tools import Runnable
from .display import counted, usage_words
from .session import Session

_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)
_HELP = """/model NAME  the model that answers from now on; without NAME, the one that does
/tools       what the model may call; ! marks tools that ask before they run
/save FILE   keep the conversation; --resume FILE goes on with it
/new         begin a new conversation
/usage       what this one took so far
/quit        leave, as Ctrl-D does
A backslash at the end of a line goes on in the next. Ctrl-C stops an answer and its tools."""


class Commands:
    """check raises where no back end has a model of that name."""

    def __init__(self, session: Session, given: tuple[AnyTool, ...], check: Callable[[str], object]) -> None:
        self._session = session
        self._given = given
        self._check = check
        self.is_over = False
        self._known: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "model": self._model,
            "tools": self._tools,
            "save": self._save,
            "new": self._new,
            "usage": self._usage,
            "quit": self._quit,
            "exit": self._quit,
        }

    def run(self, line: str) -> bool:
        """Whether it was a command; a path, such as /etc/hosts, is none."""
        found = _COMMAND.fullmatch(line.strip())
        if found is None:
            return False
        name, rest = found.groups(default="")
        command = self._known.get("help" if name == "?" else name.lower())
        try:
            if command is None:
                self._session.reporter.fault(f"there is no command /{name}; /help lists what there is.")
            else:
                command(rest.strip())
        except GatewayError as error:
            self._session.reporter.fault(error.sentence())
        return True

    def _help(self, rest: str) -> None:
        self._note(_HELP)

    def _model(self, name: str) -> None:
        if name:
            self._check(name)
            self._session.agent.model = name
        self._note(f"model: {self._session.agent.model}")

    def _tools(self, rest: str) -> None:
        tools = self._session.worker.run(runnables_of(self._given))
        lines = [f"{'!' if tool.changes_things else ' '} {tool.tool.name}: {_first_line(tool)}" for tool in tools]
        self._note("\n".join(lines) or "no tools; --workspace and --mcp give some.")

    def _save(self, rest: str) -> None:
        if not rest:
            self._session.reporter.fault("expected a file: /save FILE.")
            return
        path = Path(rest).expanduser()
        self._session.save(path)
        self._note(f"saved in {path}")

    def _new(self, rest: str) -> None:
        self._session.conversation = Conversation()
        self._note("a new conversation")

    def _usage(self, rest: str) -> None:
        spent = self._session.spent
        words = [counted(spent.answers, "answer"), *usage_words(spent.usage)]
        self._note(", ".join([*words, f"{spent.seconds:.1f} s", counted(spent.calls, "call")]))

    def _quit(self, rest: str) -> None:
        self.is_over = True

    def _note(self, text: str) -> None:
        self._session.reporter.note(text)


def _first_line(tool: Runnable) -> str:
    lines = (tool.tool.description or "").strip().splitlines()
    return lines[0][:100] if lines else ""
