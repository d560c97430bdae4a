"""What looking for calls costs for one streamed piece of text, beside all else that happens to it on its way."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from toolwire.calls.schemas import Schemas
from toolwire.calls.validation import OfferedTools, ToolOffer
from toolwire.calls.written.splitter import CallSplitter, SplitterPolicy
from toolwire.events import Event, PartDelta, PartStarted, Started
from toolwire.types import Text, Tool

from .wire import Line, frames

PIECE = 12
ROUNDS = 5
_PROSE = (
    "The quick brown fox jumps over the lazy dog, again and again; then it rests.\nA new line begins, and 1 < 2.\n\n"
)
_CODE = "```python\nif a < b and c[0] > {1: 2}[x]:\n    print('<b>', \"q\")\n    return [f(x) for x in y]\n```\n"
_MARKDOWN = (
    "## A heading\n\n- **bold** and `code`, see [here](https://example.org)\n- *more*: 3 > 2\n\n> a quotation\n\n"
)
TEXTS = {"prose": _PROSE * 150, "code": _CODE * 150, "markdown": _MARKDOWN * 150}
WAYS = ("translated", "translated, told", "translated, untold", "verbatim", "verbatim, untold", "parser alone, told")

_TOOLS = [Tool(name="search", schema={"type": "object", "properties": {"query": {"type": "string"}}})]


def measured(text: str) -> dict[str, float]:
    """Microseconds of CPU for one piece, the least of some rounds taken in turns."""
    schemas, pieces = Schemas(1 << 20), frames(text, PIECE)
    deltas: list[list[Event]] = [[PartDelta(0, text[at : at + PIECE])] for at in range(0, len(text), PIECE)]
    ways: dict[str, Callable[[], None]] = {
        "translated": lambda: _stream(pieces, Line(_TOOLS, schemas, is_tap=False, listens=False)),
        "translated, told": lambda: _stream(
            pieces, Line(_TOOLS, schemas, is_tap=False, listens=True, is_instructed=True)
        ),
        "translated, untold": lambda: _stream(pieces, Line(_TOOLS, schemas, is_tap=False, listens=True)),
        "verbatim": lambda: _stream(pieces, Line(_TOOLS, schemas, is_tap=True, listens=False)),
        "verbatim, untold": lambda: _stream(pieces, Line(_TOOLS, schemas, is_tap=True, listens=True)),
        "parser alone, told": lambda: _speak(deltas, schemas),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time_ns()
            way()
            best[name] = min(best[name], (time.process_time_ns() - start) / 1000 / len(deltas))
    return best


def _stream(pieces: list[bytes], line: Line) -> None:
    for piece in pieces:
        line.pipe.feed(piece)


def _speak(deltas: list[list[Event]], schemas: Schemas) -> None:
    numbers, offer = count(), ToolOffer(_TOOLS)
    spoken = CallSplitter(
        OfferedTools(offer, schemas, True), offer, lambda prefix: f"{prefix}{next(numbers)}", SplitterPolicy()
    )
    spoken.send([Started(id="a", model="m"), PartStarted(index=0, part=Text(text=""))])
    for events in deltas:
        spoken.send(events)
