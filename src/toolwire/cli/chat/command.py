"""`toolwire chat`: an agent in the terminal. With a prompt it answers once and exits."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...errors import ConfigError
from ..serve import ConfigFlag


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChatOptions:
    model: Annotated[
        str | None, Parameter(help="Model to use, as backend/model; otherwise the first one that is found.")
    ] = None
    mcp: Annotated[
        tuple[str, ...],
        Parameter(
            help="MCP server whose tools the model may call: a command line or a URL. Can be repeated.", negative=""
        ),
    ] = ()
    workspace: Annotated[Path | None, Parameter(help="Folder whose files the model may read.")] = None
    allow_shell: Annotated[bool, Parameter(help="Let the model run commands in it.", negative="")] = False
    allow_write: Annotated[bool, Parameter(help="Let the model write and edit files in it.", negative="")] = False
    url: Annotated[str | None, Parameter(help="A running gateway to use, with the key in TOOLWIRE_KEY.")] = None
    config: ConfigFlag = None
    resume: Annotated[
        Path | None, Parameter(help="Continue the conversation in this file; `last` is the last chat at a terminal.")
    ] = None
    save: Annotated[Path | None, Parameter(help="Save the conversation to this file after each answer.")] = None
    image: Annotated[
        tuple[Path, ...], Parameter(help="Image or file to send with the prompt. Can be repeated.", negative="")
    ] = ()
    plain: Annotated[
        bool, Parameter(help="Show the text as it is, and read single lines, for simple terminals.", negative="")
    ] = False
    yes: Annotated[bool, Parameter(help="Do not ask before a tool changes something.", negative="")] = False
    json: Annotated[bool, Parameter(help="Write each event as a line of JSON, for programs.", negative="")] = False
    max_iterations: Annotated[int, Parameter(help="Maximum number of requests to the model per answer.")] = 20
    effort: Annotated[str | None, Parameter(help="Reasoning effort, such as low, medium or high.")] = None


DEFAULTS = ChatOptions()


def chat(prompt: str | None = None, *, options: ChatOptions = DEFAULTS) -> int:
    """Chat with a model that may use tools. With a prompt, as an argument or in a pipe, answer it and exit."""
    if options.max_iterations < 1:
        raise ConfigError(f"found {options.max_iterations}; expected at least 1.", where="--max-iterations")
    if sys.__stdout__ is None:
        raise ConfigError("standard output is closed; redirect it to a file or to /dev/null.", where="chat")
    question = _question(prompt)
    if question is None and options.json:
        raise ConfigError("found no prompt; expected one as an argument or in a pipe.", where="--json")
    # Imported late: it takes longer than most other commands need to run.
    from .startup import start

    return start(options, question)


def _question(prompt: str | None) -> str | None:
    """The prompt followed by the content of a pipe or file; None for an interactive chat."""
    piped = ""
    if not sys.stdin.isatty() and (prompt is None or _holds_data()):
        piped = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
    given = [text for text in ((prompt or "").strip(), piped) if text]
    if not given and (prompt is not None or not sys.stdin.isatty()):
        raise ConfigError("found an empty prompt; expected a question.", where="chat")
    return "\n\n".join(given) or None


def _holds_data() -> bool:
    """Whether stdin is a pipe or a file. Anything else, such as a socket of a service manager, may never reach its end."""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
