"""Compaction: the summary that replaces a conversation, in the form of a client's dialect. Without I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ...types import Json, JsonObject, Message, Opaque, Part, Tool

MARK = "twc1."  # begins every summary that a gateway has sealed
WIRE_MARK = b'"twc1.'  # in the bytes of a request
_KINDS = ("compaction", "compaction_summary")


class FoundSummary(Struct, frozen=True):
    """A summary in a history. sealed: what only its maker can open, "" without it. text: what everybody can read.
    is_void: a compaction that failed, which its dialect ignores."""

    sealed: str
    text: str
    is_void: bool = False

    @property
    def is_ours(self) -> bool:
        return self.sealed.startswith(MARK)


class CompactionForm(Protocol):
    """members: those of a request that are about compaction. replaces_past: a summary replaces all messages before it. reason: why an
    answer ends that is a summary alone. refuses_open_calls: a conversation that waits for results is not compacted."""

    members: frozenset[str]
    replaces_past: bool
    reason: str
    refuses_open_calls: bool

    def part(self, summary: str, sealed: str, new_id: Callable[[str], str]) -> Opaque:
        """The summary as the client gets it."""

    def management(self, edits: Sequence[JsonObject]) -> Json:
        """The member context_management with these edits."""

    def notes(self, part: Opaque) -> list[Opaque]:
        """Events about the making of it."""

    def found_tools(self, messages: Sequence[Message]) -> tuple[Tool, ...]:
        """Tools that results in the conversation have made callable."""

    def retained(self, messages: Sequence[Message], new_id: Callable[[str], str]) -> list[Opaque]:
        """Messages of the user that the endpoint returns beside the summary."""


def found_summary(part: Part) -> FoundSummary | None:
    """The summary that a part of a history is, in either dialect that has them."""
    if type(part) is not Opaque or part.value.get("type") not in _KINDS:
        return None
    sealed, text = part.value.get("encrypted_content"), part.value.get("content")
    is_void = not sealed and text is None and part.dialect == "messages"
    return FoundSummary(
        sealed if isinstance(sealed, str) else "", text if isinstance(text, str) else "", is_void=is_void
    )


def is_trigger(part: Part) -> bool:
    return type(part) is Opaque and part.value.get("type") == "compaction_trigger"
