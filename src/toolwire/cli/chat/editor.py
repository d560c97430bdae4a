"""The line editor of a chat: several lines, pasted as one prompt, history, completion, and a status line.

It needs prompt_toolkit (`toolwire[chat]`). Without it, TypedLines of terminal.py reads one line at a time.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...installation import install_command
from ...wire.exact_json import BadJson, decode, encode
from .terminal import TypedLines, one_line

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

_MAX_HISTORY = 1000  # entries
_PATH_COMMANDS = ("/image", "/save")


class EditedLines(TypedLines):
    """status: the text of the bottom line. words: completions for what is typed so far."""

    def __init__(self, history: Path | None) -> None:
        from prompt_toolkit import PromptSession

        super().__init__(None)
        self.status: Callable[[], str] = lambda: ""
        self.words: Callable[[str], Sequence[str]] = lambda text: ()
        self._entries = _open_history(history, self)
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            history=self._entries,
            key_bindings=_bindings(),
            completer=_completer(self),
            complete_while_typing=False,
            enable_open_in_editor=True,
            prompt_continuation="  ",
            mouse_support=False,
        )

    def ask(self, prompt: str, prefill: str = "") -> str:
        """One prompt, which may have several lines. Raises EOFError and KeyboardInterrupt."""
        is_prompt = prompt == "> "
        if not is_prompt:
            from prompt_toolkit import PromptSession

            answers: PromptSession[str] = PromptSession()  # answers are not part of the history
            return _clean(answers.prompt(prompt, default=prefill))
        return _clean(self._session.prompt(prompt, default=prefill, bottom_toolbar=lambda: one_line(self.status())))

    def remember(self, line: str) -> None:
        """The editor stores what it accepts."""


def open_lines(history: Path | None, *, is_plain: bool, has_colour: bool) -> TypedLines:
    """The editor if it can be used, else lines of readline. problem says what is missing."""
    if is_plain:
        return TypedLines(history, has_colour=has_colour)
    try:
        return EditedLines(None if history is None else history.with_suffix(".jsonl"))
    except ImportError:
        lines = TypedLines(history, has_colour=has_colour)
        lines.problem = lines.problem or f"for prompts of several lines and completion: {install_command('chat')}"
        return lines


def edit_text(text: str, environ: dict[str, str] | None = None) -> str:
    """Opens $VISUAL or $EDITOR with the text in a private file, and returns what was saved. Raises OSError if it cannot run."""
    import shlex
    import subprocess

    found = os.environ if environ is None else environ
    command = shlex.split(found.get("VISUAL") or found.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="toolwire-") as folder:
        path = Path(folder) / "prompt.md"
        path.write_text(text, encoding="utf-8")
        if (code := subprocess.run([*command, str(path)], check=False).returncode) != 0:
            raise OSError(f"{command[0]} ended with exit code {code}")
        return path.read_text(encoding="utf-8", errors="replace").strip()


def _clean(typed: str) -> str:
    """Without lone surrogates, which no request can contain."""
    return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _bindings() -> KeyBindings:
    """Enter sends, unless the line ends in a backslash. Alt-Enter and Ctrl-J begin a new line."""
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("enter")
    def send(event: Any) -> None:
        buffer = event.current_buffer
        if buffer.document.current_line_before_cursor.endswith("\\") and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    @bindings.add("c-j")
    def new_line(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


def _completer(lines: EditedLines) -> Completer:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
    from prompt_toolkit.document import Document

    paths = PathCompleter(expanduser=True)

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            typed = document.text_before_cursor
            command, space, rest = typed.partition(" ")
            if space and command in _PATH_COMMANDS:
                yield from paths.get_completions(Document(rest), complete_event)
                return
            word = rest if space else typed
            for found in lines.words(typed):
                if found.startswith(word):
                    yield Completion(one_line(found), start_position=-len(word))

    return Words()


def _open_history(path: Path | None, lines: EditedLines) -> History:
    from prompt_toolkit.history import History, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    place = path

    class PrivateHistory(History):
        """One JSON string in each line, in a file that only its owner can read."""

        def load_history_strings(self) -> Iterable[str]:
            with suppress(OSError):
                for line in reversed(place.read_bytes().splitlines()[-_MAX_HISTORY:]):
                    with suppress(BadJson, UnicodeDecodeError):
                        if isinstance(entry := decode(line), str):
                            yield entry

        def store_string(self, string: str) -> None:
            with suppress(OSError), open(os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
                file.write(encode(_clean(string)) + b"\n")

    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _trim(path)
    except OSError as error:
        lines.problem = f"the input history is not saved: {error.strerror or error} ({path})"
        return InMemoryHistory()
    return PrivateHistory()


def _trim(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)
    entries = path.read_bytes().splitlines(keepends=True)
    if len(entries) > 2 * _MAX_HISTORY:
        path.write_bytes(b"".join(entries[-_MAX_HISTORY:]))
