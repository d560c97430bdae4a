"""The two tools as the frameworks want them, plain functions with types; what each was called with is written down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

task: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
called: list[dict[str, Any]] = []
INSTRUCTIONS = "You help with notes. Use the tools you have."


class Deep(BaseModel):
    pages: list[int]


def localSearch(query: Annotated[str, "What to look for."], limit: Annotated[int, "At most so many."] = 5) -> str:
    """Search the notes."""
    return _found("localSearch", query=query, limit=limit)


def webSearch(query: Annotated[str, "What to look for."], deep: Annotated[Deep | None, "Which pages."] = None) -> str:
    """Search the web."""
    return _found("webSearch", query=query, deep=deep and Deep.model_validate(deep).model_dump())


def tell(text: str) -> None:
    """The last line of output."""
    print(json.dumps({"called": called, "text": text}))


def _found(name: str, **arguments: Any) -> str:
    called.append({"name": name, "args": arguments})
    return str(task["results"][len(called) - 1])
