"""A request made ready for the back end that gets it: its history settled, its tools in kinds, names and forms known there."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from ..backends.base import Backend
from ..calls.ledger.repair import Reader, losses_of, settle
from ..calls.ledger.repetition import noticed
from ..calls.ledger.rules import Repair
from ..calls.schemas import Schemas, ToolSets
from ..calls.schemas.cache import ToolSet
from ..calls.tools.adapter import Fitter, fit_ids
from ..calls.tools.encoded_arguments import ArgumentDecoder, Encoding
from ..calls.tools.kinds import lower
from ..calls.tools.names import Names
from ..config.file import Guard
from ..offload import LARGE
from ..types import Loss, Request, Tool

_NO_KINDS: frozenset[str] = frozenset()
_LARGE_TOOLS = 256 * 1024  # bytes; a schema costs a hundred times as much for each byte as the rest of a body


class Prepared(Struct, frozen=True, kw_only=True):
    """why: the reason why the client's bytes no longer say what is meant, "" where they do. offered: the tools by the names
    that the model is told, with the client's own schemas."""

    request: Request
    offered: tuple[Tool, ...]
    names: Names | None = None
    ids: frozenset[str] | None = None  # of its calls and results, where they were looked for
    losses: tuple[Loss, ...] = ()
    repairs: tuple[Repair, ...] = ()
    encodings: Mapping[str, Encoding] = {}
    why: str = ""


class Preparing:
    """Caches what it learned of tools, because a conversation sends the same ones each time. Any thread may use it."""

    def __init__(self) -> None:
        lock = Lock()
        self.schemas = Schemas(lock=lock)
        self._tool_sets = ToolSets(self.schemas, lock)
        self._fitter = Fitter(lock=lock)

    def is_costly(self, request: Request) -> bool:
        """Whether prepare() may take long: a large history, or tools that were not seen before and have large schemas."""
        if request.size <= _LARGE_TOOLS:
            return False
        return request.size > LARGE or not self._tool_sets.has(request)

    def decoder(self, prepared: Prepared) -> ArgumentDecoder | None:
        """For the arguments of an answer's calls; None where they come as the client's schemas have them."""
        if not prepared.encodings:
            return None
        return ArgumentDecoder(prepared.encodings, prepared.offered, self.schemas)

    def prepare(self, request: Request, backend: Backend, level: Guard, *, is_own: bool) -> Prepared:
        """is_own: the back end speaks the client's dialect. Raises BadRequest for tools that nobody can understand."""
        if level == "off" and is_own:
            return _lowered(request, (), backend.tool_kinds, 0)
        known = self._tool_sets.check(request) if level != "off" else None
        profile = backend.profile
        reader = Reader(
            is_strict=is_own and profile.keeps_state,
            may_sign=is_own and profile.signs_thoughts,
            is_formal=profile.is_formal,
            fails_in_words=profile.fails_in_words,
        )
        settled = settle(request, reader)
        kinds = backend.tool_kinds if is_own else _NO_KINDS
        prepared = _lowered(settled.request, settled.repairs, kinds, profile.name_length)
        if level in ("repair", "retry"):
            prepared = _noticed(prepared)
        return self._fitted(prepared, known, backend, is_own=is_own)

    def _fitted(self, prepared: Prepared, known: ToolSet | None, backend: Backend, *, is_own: bool) -> Prepared:
        """Ids and schemas as this back end takes them."""
        sent, profile = prepared.request, backend.profile
        messages = fit_ids(sent.messages, profile.ids, prepared.ids)
        if messages is not sent.messages:
            sent = replace(sent, messages=messages, wire=b"")
        fitted = self._fitter.fit(sent, profile, known, is_own=is_own)
        if fitted.request is prepared.request:
            return prepared
        return replace(
            prepared,
            request=fitted.request,
            losses=(*prepared.losses, *fitted.losses),
            encodings=fitted.encodings,
            why=prepared.why or "the back end takes other ids or schemas",
        )


def _lowered(request: Request, repairs: tuple[Repair, ...], kinds: frozenset[str], longest: int) -> Prepared:
    lowered = lower(request, kinds, longest=longest)
    why = "its history had to be repaired" if repairs else ""
    return Prepared(
        request=lowered.request,
        offered=lowered.request.tools,
        names=lowered.names,
        ids=lowered.ids,
        losses=(*losses_of(repairs), *lowered.losses),
        repairs=repairs,
        why=why if lowered.names is None else "the back end does not know all kinds and names of its tools",
    )


def _noticed(prepared: Prepared) -> Prepared:
    messages = noticed(prepared.request.messages)
    if messages is prepared.request.messages:
        return prepared
    return replace(
        prepared,
        request=replace(prepared.request, messages=messages, wire=b""),
        losses=(*prepared.losses, Loss("loop", "messages", "the model repeats itself, and is told so")),
        why=prepared.why or "the model repeats itself",
    )
