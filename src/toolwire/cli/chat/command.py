"""`toolwire chat`: an agent in the terminal, on the same loop that programs use; answers once where it is given a prompt."""

from __future__ import annotations

import os
import stat
import sys

from ...errors import ConfigError
from .options import DEFAULTS, Options


def chat(prompt: str | None = None, *, options: Options = DEFAULTS) -> int:
    """Talk with a model that may use tools; with a prompt, or one in a pipe, answer it and leave."""
    if options.max_iterations < 1:
        raise ConfigError(f"found {options.max_iterations}; expected at least 1.", where="--max-iterations")
    if sys.__stdout__ is None:
        message = "found standard output closed; expected somebody to read the answer, or /dev/null."
        raise ConfigError(message, where="chat")
    question = _question(prompt)
    if question is None and options.json:
        raise ConfigError("found no prompt; expected one as an argument or in a pipe.", where="--json")
    # Other commands need nothing of it, and it takes longer to import than they to run.
    from .startup import start

    return start(options, question)


def _question(prompt: str | None) -> str | None:
    """The prompt and what a pipe or file holds, one after the other; None where a person is to type."""
    piped = ""
    if not sys.stdin.isatty() and (prompt is None or _holds_data()):
        piped = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    given = [text for text in ((prompt or "").strip(), piped) if text]
    if not given and (prompt is not None or not sys.stdin.isatty()):
        raise ConfigError("found an empty prompt; expected a question.", where="chat")
    return "\n\n".join(given) or None


def _holds_data() -> bool:
    """Other things than pipes and files, such as a socket of a service, may never come to an end."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
