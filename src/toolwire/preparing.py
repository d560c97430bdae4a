"""A request made ready for the back end that gets it: its history settled, its tools in kinds, names and forms known there."""

from __future__ import annotations

from msgspec import Struct

from .backends.base import Backend
from .calls.history import Repair
from .calls.kinds import lower
from .calls.ledger import losses_of, settle
from .calls.names import Names
from .calls.schemas import Schemas, ToolSets
from .types import Loss, Request, Tool

_NO_KINDS: frozenset[str] = frozenset()


class Prepared(Struct, frozen=True, kw_only=True):
    """why: the reason why the client's bytes no longer say what is meant, "" where they do. offered: the tools by the names
    that the model is told, with the client's own schemas."""

    request: Request
    offered: tuple[Tool, ...]
    names: Names | None = None
    losses: tuple[Loss, ...] = ()
    repairs: tuple[Repair, ...] = ()
    loosened: frozenset[str] = frozenset()
    why: str = ""


class Preparing:
    """Keeps what it learned of tools, because a conversation sends the same ones each time."""

    def __init__(self) -> None:
        self.schemas = Schemas()
        self._tool_sets = ToolSets(self.schemas)

    def prepare(self, request: Request, backend: Backend, *, is_own: bool, is_guarded: bool) -> Prepared:
        """is_own: the back end speaks the client's dialect. Raises BadRequest for tools that nobody can understand."""
        if is_guarded:
            self._tool_sets.check(request)
        settled = settle(request) if is_guarded or not is_own else None
        sent, repairs = (request, ()) if settled is None else (settled.request, settled.repairs)
        lowered = lower(sent, backend.tool_kinds if is_own else _NO_KINDS, is_own=is_own)
        why = "its history had to be repaired" if repairs else ""
        if lowered.names is not None:
            why = "the back end does not know all kinds of its tools"
        return Prepared(
            request=lowered.request,
            offered=lowered.request.tools,
            names=lowered.names,
            losses=(*losses_of(repairs), *lowered.losses),
            repairs=repairs,
            why=why,
        )
