"""Web searches that a client leaves to its provider, run here for back ends that have none.

The search becomes a function. When the model calls it, the gateway searches, shows call and result to the client in its dialect's own
form, and asks the model again, until it answers without searching (search_turn.py).
"""

from __future__ import annotations

from msgspec.structs import replace

from ..backends.base import Backend, EventReply, Model, how_of, local_of
from ..backends.search import Searcher
from ..dialects.messages import web_search as in_messages
from ..dialects.responses import web_search as in_responses
from ..dialects.shared.web_search import SearchForm, WebSearch, retold
from ..types import Loss, Message, Request, Tool, ToolChoice
from .rounds import RoundsReply
from .search_answer import Means, SearchTurn

FORMS: dict[str, SearchForm] = {"messages": in_messages, "responses": in_responses}
_NAMED = 20  # domains told to the model
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for, in the words of a search engine."}},
    "required": ["query"],
    "additionalProperties": False,
}


class Searching:
    """What a request needs of it is decided for each one; most need nothing and stay the same objects."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def around(self, backend: Backend, request: Request) -> tuple[Backend, Request]:
        """The back end and request to go on with: the same, or with the client's web search run here."""
        form = FORMS.get(request.origin)
        if form is None:
            return backend, request
        if backend.dialect == request.origin and "hosted" in backend.tool_kinds:
            return backend, request if request.wire else _without_ours(request, form)
        wanted = next((found for tool in request.tools if (found := form.wanted(tool)) is not None), None)
        function = "" if wanted is None else _free_name(request.tools)
        messages = retold(request.messages, form.past, function)
        if wanted is None:
            return backend, _saying(request, messages)
        lowered = replace(_offering(request, form, wanted, function), messages=messages)
        return _SearchingBackend(backend, Means(self._searcher, form, wanted, function)), lowered


class _SearchingBackend(Backend):
    """The back end of one request: its answer is made here, of all that the real one says."""

    dialect = ""
    tool_kinds: frozenset[str] = frozenset()

    def __init__(self, inner: Backend, means: Means) -> None:
        self.name = inner.name
        self.profile = inner.profile
        self._inner = inner
        self._means = means

    async def models(self) -> list[Model]:
        return await self._inner.models()

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        # Asked again for a better call, the model must still know what was found before.
        messages = retold(request.messages, self._means.form.past, self._means.function)
        request = replace(request, messages=messages)
        reply = await self._inner.open(request, is_verbatim=False)
        why = "the search that the gateway runs cannot be told"
        unheard = tuple(Loss(f"web_search.{name}", "tools", why) for name in self._means.wanted.unheard)
        return RoundsReply(
            events=SearchTurn(self._inner, self._means).play(request, reply),
            losses=(*reply.losses, *unheard),
            headers=reply.headers,
            how=how_of(reply),
            local=local_of(reply),
            first=reply,
        )

    async def close(self) -> None:
        """The inner one belongs to somebody else."""


def _without_ours(request: Request, form: SearchForm) -> Request:
    """A provider with a search of its own does not know those that were run here."""
    messages = retold(request.messages, lambda part: found if (found := form.past(part)) and found.is_ours else None)
    return _saying(request, messages)


def _saying(request: Request, messages: tuple[Message, ...]) -> Request:
    """With these messages; its bytes are then no longer what is meant."""
    return request if messages is request.messages else replace(request, messages=messages, wire=b"")


def _free_name(tools: tuple[Tool, ...]) -> str:
    taken = {name for tool in tools if tool.kind != "hosted" for name in (tool.name, tool.label)}
    name, number = "web_search", 1
    while name in taken:
        number += 1
        name = f"web_search_{number}"
    return name


def _offering(request: Request, form: SearchForm, wanted: WebSearch, function: str) -> Request:
    """The same with a function in the place of the hosted search."""
    hosted = {tool.name for tool in request.tools if form.wanted(tool) is not None}
    offered = Tool(name=function, description=_description(wanted), schema=_SCHEMA)
    # First, so that it keeps its name when names that back ends refuse are rewritten.
    tools = (offered, *(tool for tool in request.tools if form.wanted(tool) is None))
    choice = request.tool_choice
    if choice is not None and not hosted.isdisjoint(choice.names):
        names = tuple(function if name in hosted else name for name in choice.names)
        mode = "named" if choice.mode == "hosted" else choice.mode
        choice = ToolChoice(mode=mode, names=names, is_required=choice.is_required)
    return replace(request, tools=tools, tool_choice=choice, is_lowered=True)


def _description(wanted: WebSearch) -> str:
    lines = ["Search the web. The result is a list of titles, addresses and short excerpts."]
    if wanted.allowed:
        lines.append(f"Only results from {', '.join(wanted.allowed[:_NAMED])} are returned.")
    if wanted.blocked:
        lines.append(f"Results from {', '.join(wanted.blocked[:_NAMED])} are left out.")
    return " ".join(lines)
