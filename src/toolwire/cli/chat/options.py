"""What can be said to `toolwire chat`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..found import ConfigFlag


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What can be chosen beside the prompt."""

    model: Annotated[
        str | None, Parameter(help="Model to ask, as backend/model; otherwise the first that is found.")
    ] = None
    mcp: Annotated[
        tuple[str, ...],
        Parameter(
            help="An MCP server whose tools the model may call: a command line, or an address. May be given again.",
            negative="",
        ),
    ] = ()
    workspace: Annotated[Path | None, Parameter(help="Folder whose files the model may read.")] = None
    allow_shell: Annotated[bool, Parameter(help="It may run commands there, too.", negative="")] = False
    allow_write: Annotated[bool, Parameter(help="It may write and edit files there, too.", negative="")] = False
    url: Annotated[str | None, Parameter(help="A running gateway to ask, with the key in TOOLWIRE_KEY.")] = None
    config: ConfigFlag = None
    resume: Annotated[Path | None, Parameter(help="Go on with the conversation in this file.")] = None
    save: Annotated[Path | None, Parameter(help="Keep the conversation in this file, after each answer.")] = None
    yes: Annotated[bool, Parameter(help="Do not ask before a tool changes something.", negative="")] = False
    json: Annotated[bool, Parameter(help="Write each event as a line of JSON, for programs.", negative="")] = False
    max_iterations: Annotated[int, Parameter(help="How often the model may be asked within one answer.")] = 20
    effort: Annotated[str | None, Parameter(help="How much it shall think, such as low, medium or high.")] = None


DEFAULTS = Options()
