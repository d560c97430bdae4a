"""One request on its way: as the client sent it, as the back end gets it, and everything the stages find out."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..backends.base import Backend
from ..calls.search.selection import SearchPlan
from ..calls.tools.encoded_arguments import Encoding
from ..calls.tools.names import ToolNames
from ..config.file import Guard
from ..config.policy import Corrections, Policy
from ..memory.answers import StoredTurn
from ..memory.connection import History
from ..memory.signatures import TurnSignatures
from ..telemetry import Record
from ..types import Loss, Request, Tool
from .mounted.offer import MountedOffer


class Job(Struct, kw_only=True):
    """received is the client's request and never changes. request is what the stages make of it and the back end gets.

    is_own: the back end speaks the client's dialect. is_renamed: it knows the model by another name than the client.
    has_past: the history has calls, results or earlier answers. has_fitting_tools: the back end accepts all tools as they are.
    stale: why the client's bytes no longer describe the request, "" while they do. offered: the tools by the names that the
    model sees, with the client's schemas. names and encodings: how the names and arguments of the model's calls become the client's.
    """

    received: Request
    request: Request
    backend: Backend
    model: str  # as the back end knows it
    policy: Policy
    guard: Guard
    record: Record
    is_own: bool
    is_renamed: bool
    owner: str = ""
    history: History | None = None  # of a connection, in place of the gateway's store
    stale: str = ""
    losses: list[Loss] = field(default_factory=list)
    stored: StoredTurn | None = None
    is_queued_upstream: bool = False  # the back end stores answers, and makes this one in its own background
    has_past: bool = True
    has_fitting_tools: bool = False
    recall: TurnSignatures | None = None
    offered: tuple[Tool, ...] = ()
    names: ToolNames | None = None
    call_ids: frozenset[str] | None = None  # of the history, where a stage has collected them
    encodings: Mapping[str, Encoding] = {}
    search: SearchPlan | None = None  # where the model does not get all tools
    mounted: MountedOffer | None = None  # tools of MCP servers that the gateway adds

    def change(self, request: Request, why: str) -> None:
        """The only way to send something else than the client's bytes."""
        self.request = replace(request, wire=b"") if request.wire else request
        self.stale = self.stale or why

    @property
    def is_stored_upstream(self) -> bool:
        return self.stored is not None and not self.stored.is_here

    @property
    def terms(self) -> Corrections:
        """Only a single choice can be corrected, and only where no back end has stored the wrong one."""
        terms = self.policy.terms
        if self.guard == "retry" and self.received.sampling.choices == 1 and not self.is_stored_upstream:
            return terms
        return replace(terms, corrections=0)
