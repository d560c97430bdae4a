"""The interactive prompt: reads a line, runs it as a slash command or sends it to the model, until the user exits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ...agent import Conversation, file
from ...agent.agent import AnyTool, runnables_of
from ...errors import GatewayError
from ...types import Media
from .display import counted, usage_phrases
from .editor import EditedLines, edit_text
from .saved import LAST, SavedChats, title_of
from .session import ChatSession, load_conversation, on_interrupt, raise_interrupts
from .terminal import Terminal, TypedLines

_COMMAND = re.compile(r"/([A-Za-z?]+)(?:\s+(.*))?", re.DOTALL)
_HELP = """/model NAME   switch to this model; without NAME, show the current one
/tools        list the tools that the model may call; ! marks those that need approval
/image FILE   attach an image or another file to the next prompt
/edit         write the prompt in $EDITOR
/save FILE    save the conversation; --resume FILE continues it
/sessions     list earlier conversations
/resume N     continue one of them; without N, the last one
/new          start a new conversation
/usage        show tokens, cost, time and calls so far
/quit         exit, as Ctrl-D does
Enter sends; Alt-Enter, or a backslash at the end of a line, begins a new line. Tab completes. Ctrl-C stops an answer and its tools."""


class Commands:
    """check raises if no back end has a model of that name; models lists the names for completion. attached: files for the next
    prompt. written: a prompt that an editor returned."""

    def __init__(
        self,
        session: ChatSession,
        tools: tuple[AnyTool, ...],
        check: Callable[[str], object],
        saved: SavedChats | None = None,
        models: Callable[[], Sequence[str]] = lambda: (),
    ) -> None:
        self._session = session
        self._given_tools = tools
        self._check = check
        self._saved = saved or SavedChats()
        self._models = models
        self.attached: list[Media] = []
        self.written = ""
        self.is_over = False
        self._known: dict[str, Callable[[str], None]] = {
            "help": lambda _: self._note(_HELP),
            "model": self._model,
            "tools": self._tools,
            "image": self._image,
            "edit": self._edit,
            "save": self._save,
            "sessions": self._sessions,
            "resume": self._resume,
            "new": self._new,
            "usage": self._usage,
            "quit": self._quit,
            "exit": self._quit,
        }

    def run(self, line: str) -> bool:
        """Whether the line was a command; a path, such as /etc/hosts, is not."""
        found = _COMMAND.fullmatch(line.strip())
        if found is None:
            return False
        name, rest = found.groups(default="")
        command = self._known.get("help" if name == "?" else name.lower())
        try:
            if command is None:
                self._session.reporter.fault(f"there is no command /{name}; /help lists the commands.")
            else:
                command(rest.strip())
        except GatewayError as error:
            self._session.reporter.fault(error.sentence())
        return True

    def words(self, typed: str) -> list[str]:
        """Completions: commands, models after /model, and the numbers of chats after /resume."""
        command, space, _ = typed.partition(" ")
        if not typed.startswith("/"):
            return []
        if not space:
            return [f"/{name}" for name in self._known]
        if command == "/model":
            return list(self._models())
        return [str(number + 1) for number in range(len(self._saved.newest()))] if command == "/resume" else []

    def status(self) -> str:
        """The status line: model, context, usage and cost."""
        totals = self._session.totals
        phrases = [self._session.agent.model]
        if totals.context:
            phrases.append(f"context {totals.context:,} tokens")
        phrases += usage_phrases(totals.usage)
        if totals.cost is not None:
            phrases.append(f"cost {totals.cost:.4f}")
        if self.attached:
            phrases.append(counted(len(self.attached), "attachment"))
        return " | ".join(phrases)

    def _image(self, rest: str) -> None:
        if not rest:
            self._session.reporter.fault("expected a file: /image FILE.")
            return
        media = file(Path(rest.strip("'\"")).expanduser())
        self.attached.append(media)
        self._note(f"attached {media.name} ({media.mime}); it is sent with the next prompt")

    def _edit(self, rest: str) -> None:
        try:
            self.written = edit_text(rest)
        except (OSError, ValueError) as error:
            self._session.reporter.fault(f"the editor did not run: {error}; $EDITOR selects another.")

    def _sessions(self, rest: str) -> None:
        chats = self._saved.newest()
        lines = [
            f"{number:>3}  {datetime.fromtimestamp(chat.changed):%Y-%m-%d %H:%M}  {counted(chat.messages, 'message')}  {chat.title}"
            for number, chat in enumerate(chats, 1)
        ]
        self._note("\n".join(lines) or "no earlier conversations.")

    def _resume(self, rest: str) -> None:
        path = self._saved.find(rest or LAST)
        conversation = load_conversation(path)
        self._session.conversation, self._session.save_path = conversation, path
        self._note(f"continuing {title_of(conversation)!r}, {counted(len(conversation.messages), 'message')}")

    def _model(self, name: str) -> None:
        if name:
            self._check(name)
            self._session.agent.model = name
        self._note(f"model: {self._session.agent.model}")

    def _tools(self, rest: str) -> None:
        tools = self._session.loop.run(runnables_of(self._given_tools))
        lines = [
            f"{'!' if tool.changes_things else ' '} {tool.tool.name}: {_first_line(tool.tool.description or '')}"
            for tool in tools
        ]
        self._note("\n".join(lines) or "no tools; --workspace and --mcp add some.")

    def _save(self, rest: str) -> None:
        if not rest:
            self._session.reporter.fault("expected a file: /save FILE.")
            return
        path = Path(rest).expanduser()
        self._session.save(path)
        self._note(f"saved in {path}")

    def _new(self, rest: str) -> None:
        self._session.conversation = Conversation()
        if self._session.is_autosaved:
            self._session.save_path = self._saved.new_path(datetime.now())
        self._note("a new conversation")

    def _usage(self, rest: str) -> None:
        totals = self._session.totals
        phrases = [counted(totals.answers, "answer"), *usage_phrases(totals.usage)]
        phrases += [] if totals.cost is None else [f"cost {totals.cost:.4f}"]
        self._note(", ".join([*phrases, f"{totals.seconds:.1f} s", counted(totals.calls, "call")]))

    def _quit(self, rest: str) -> None:
        self.is_over = True

    def _note(self, text: str) -> None:
        self._session.reporter.note(text)


def converse(session: ChatSession, commands: Commands, lines: TypedLines, terminal: Terminal) -> int:
    """Returns the exit code: 0, or 130 after Ctrl-C."""
    is_interrupted = False
    if isinstance(lines, EditedLines):
        lines.status, lines.words = commands.status, commands.words
    # Ctrl-C between an answer and the next prompt comes a moment too late to stop anything, and must not exit.
    with on_interrupt(lambda: None):
        while not commands.is_over:
            try:
                with raise_interrupts():
                    line = lines.ask("> ")
            except EOFError:
                terminal.line()
                return 0
            except KeyboardInterrupt:
                terminal.line()
                if is_interrupted:
                    return 130
                is_interrupted = True
                terminal.line("Ctrl-C again, Ctrl-D or /quit exits.", "dim")
                continue
            is_interrupted = False
            if line.strip():
                lines.remember(line)
                _run(line, session, commands)
                terminal.line()
    return 0


def _run(line: str, session: ChatSession, commands: Commands) -> None:
    try:
        with raise_interrupts():
            is_command = commands.run(line)
    except KeyboardInterrupt:  # for example while a list of tools does not come
        session.reporter.fault("interrupted")
        return
    if is_command and commands.written:
        line, commands.written, is_command = commands.written, "", False
        session.reporter.note(line)
    try:
        if not is_command:
            attached, commands.attached = commands.attached, []
            session.answer([line, *attached] if attached else line)
    except GatewayError as error:  # such as a file that cannot be written; the chat continues
        session.reporter.fault(error.sentence())


def _first_line(text: str) -> str:
    return next(iter(text.strip().splitlines()), "")[:100]
