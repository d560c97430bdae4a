"""Failed results hold words alone, because some providers refuse anything else there: their media follow the results of the turn."""

from __future__ import annotations

from msgspec.structs import replace

from ...errors import quote
from ...types import Media, Message, Part, Text, ToolResult
from .report import Placed, Repair

ATTACHED = "[its output is attached behind the results]"


def is_loaded(result: ToolResult) -> bool:
    """Whether it failed and holds more than words."""
    return result.is_error and any(isinstance(part, Media) for part in result.parts)


def attached(lines: list[Placed], repairs: list[Repair]) -> list[Placed]:
    written: list[Placed] = []
    waiting: list[Part] = []
    for line in lines:
        results = [part for part in line.message.parts if isinstance(part, ToolResult)]
        if waiting and not results:
            written.append(line.having(Message(role="user", parts=tuple(waiting))))
            waiting = []
        if any(map(is_loaded, results)):
            repairs.append(Repair("media", line.where, "media of a failed result were moved behind it"))
            waiting += [part for result in results if is_loaded(result) for part in _moved(result)]
            line = line.having(line.message.with_parts(tuple(map(_in_words, line.message.parts))))
        if waiting and len(results) < len(line.message.parts):  # the user has more to say in the same message
            rest = [part for part in line.message.parts if not isinstance(part, ToolResult)]
            line = line.having(line.message.with_parts((*map(_in_words, results), *waiting, *rest)))
            waiting = []
        written.append(line)
    return [*written, Placed(lines[-1].place, Message(role="user", parts=tuple(waiting)))] if waiting else written


def _moved(result: ToolResult) -> list[Part]:
    head = Text(text=f"Attachment(s) of failed tool result {quote(result.call_id)}:")
    return [head, *(part for part in result.parts if isinstance(part, Media))]


def _in_words(part: Part) -> Part:
    if not isinstance(part, ToolResult) or not is_loaded(part):
        return part
    said = tuple(piece for piece in part.parts if not isinstance(piece, Media))
    return replace(part, parts=said or (Text(text=ATTACHED),))
