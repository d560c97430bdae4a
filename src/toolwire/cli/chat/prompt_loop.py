"""A person at a terminal: prompt, answer, prompt, until they leave."""

from __future__ import annotations

from ...errors import GatewayError
from . import interrupts
from .commands import Commands
from .line_input import TypedLines
from .session import Session
from .terminal import Terminal

_PROMPT = "> "
_LEAVING = "Ctrl-C again, Ctrl-D or /quit leaves."


def converse(session: Session, commands: Commands, lines: TypedLines, terminal: Terminal) -> int:
    """0, or 130 where the person left with Ctrl-C."""
    # Between an answer and the next prompt there is nothing to stop: a Ctrl-C that comes a moment late must not end it all.
    with interrupts.told(lambda: None):
        return _conversed(session, commands, lines, terminal)


def _conversed(session: Session, commands: Commands, lines: TypedLines, terminal: Terminal) -> int:
    interrupted = False
    while not commands.is_over:
        try:
            with interrupts.raised():
                line = lines.ask(_PROMPT)
        except EOFError:
            terminal.line()
            return 0
        except KeyboardInterrupt:
            terminal.line()
            if interrupted:
                return 130
            interrupted = True
            terminal.line(_LEAVING, "dim")
            continue
        interrupted = False
        if line.strip():
            lines.remember(line)
            _do(line, session, commands)
            terminal.line()
    return 0


def _do(line: str, session: Session, commands: Commands) -> None:
    try:
        if not _is_command(line, session, commands):
            session.answer(line)
    except GatewayError as error:  # such as a file that cannot be written: the conversation goes on
        session.reporter.fault(error.sentence())


def _is_command(line: str, session: Session, commands: Commands) -> bool:
    try:
        with interrupts.raised():
            return commands.run(line)
    except KeyboardInterrupt:  # of a list that does not come, for one
        session.reporter.fault("interrupted")
        return True
