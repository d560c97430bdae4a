"""Web searches for clients that leave them to their provider, run by the gateway for back ends without a search.

The model gets the search as a function. When it calls the function, the gateway searches, sends call and result to the client in the form of
its dialect, and sends the result to the model, until it answers without a search. A call of a client's tool next to a search ends the
turn, because only the client can run it (H092). After the last permitted search the model gets one more round, without the function.
"""

from __future__ import annotations

from msgspec.structs import replace

from ..backends.base import Backend
from ..backends.search import Searcher
from ..calls.tools.names import without_prefix
from ..dialects.messages import web_search as in_messages
from ..dialects.responses import web_search as in_responses
from ..dialects.shared.web_search import (
    SearchDisplay,
    SearchForm,
    SearchOutcome,
    WebSearch,
    outcome_text,
    with_past_searches,
)
from ..events import Event, Noted
from ..ids import new_id
from ..types import Loss, Message, Request, Text, Tool, ToolCall, ToolChoice, Usage
from .gateway_tools import (
    GatewayTools,
    Place,
    StartedCall,
    ToolOutcome,
    ToolRunningBackend,
    choice_without,
    unforced,
)

FORMS: dict[str, SearchForm] = {"messages": in_messages, "responses": in_responses}
_NAMED = 20  # domains in the description of the function
_SCHEMA = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What to look for, in the words of a search engine."}},
    "required": ["query"],
    "additionalProperties": False,
}


class Searching:
    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    def around(self, backend: Backend, request: Request) -> tuple[Backend, Request]:
        """The back end and the request, both unchanged where the request has no web search that the gateway must run."""
        form = FORMS.get(request.origin)
        if form is None:
            return backend, request
        if backend.dialect == request.origin and "hosted" in backend.tool_kinds:
            return backend, request if request.wire else _without_ours(request, form)
        wanted = next((found for tool in request.tools if (found := form.wanted(tool)) is not None), None)
        function = "" if wanted is None else _free_name(request.tools)
        messages = with_past_searches(request.messages, form.past, function)
        if wanted is None:
            return backend, _with_messages(request, messages)
        offering = replace(_offering(request, form, wanted, function), messages=messages)
        return ToolRunningBackend(backend, (_WebSearch(self._searcher, form, wanted, function),)), offering


def _without_ours(request: Request, form: SearchForm) -> Request:
    """For a provider with a search of its own, which does not know the searches of the gateway."""
    messages = with_past_searches(
        request.messages, lambda part: found if (found := form.past(part)) and found.is_ours else None
    )
    return _with_messages(request, messages)


def _with_messages(request: Request, messages: tuple[Message, ...]) -> Request:
    return request if messages is request.messages else replace(request, messages=messages)


def _free_name(tools: tuple[Tool, ...]) -> str:
    taken = {name for tool in tools if tool.kind != "hosted" for name in (tool.name, tool.label)}
    name, number = "web_search", 1
    while name in taken:
        number += 1
        name = f"web_search_{number}"
    return name


def _offering(request: Request, form: SearchForm, wanted: WebSearch, function: str) -> Request:
    """The request with a function in place of the hosted search."""
    hosted = {tool.name for tool in request.tools if form.wanted(tool) is not None}
    offered = Tool(name=function, description=_description(wanted), schema=_SCHEMA)
    # First, so that it keeps its name when a back end needs other names.
    tools = (offered, *(tool for tool in request.tools if form.wanted(tool) is None))
    choice = request.tool_choice
    if choice is not None and not hosted.isdisjoint(choice.names):
        names = tuple(function if name in hosted else name for name in choice.names)
        mode = "named" if choice.mode == "hosted" else choice.mode
        choice = ToolChoice(mode=mode, names=names, is_required=choice.is_required)
    return replace(request, tools=tools, tool_choice=choice, has_new_tools=True)


def _description(wanted: WebSearch) -> str:
    lines = ["SearchEngine the web. The result is a list of titles, addresses and short excerpts."]
    if wanted.allowed:
        lines.append(f"Only results from {', '.join(wanted.allowed[:_NAMED])} are returned.")
    if wanted.blocked:
        lines.append(f"Results from {', '.join(wanted.blocked[:_NAMED])} are left out.")
    return " ".join(lines)


_USES = 5
_MOST_USES = 50


class _WebSearch(GatewayTools):
    """The search of one request. function: its name."""

    def __init__(self, searcher: Searcher, form: SearchForm, wanted: WebSearch, function: str) -> None:
        self._searcher = searcher
        self._form = form
        self._wanted = wanted
        self._function = function
        self._uses = min(wanted.max_uses or _USES, _MOST_USES)
        self._searches = 0
        why = "the search of the gateway has no such option"
        self.losses = tuple(Loss(f"web_search.{name}", "tools", why) for name in wanted.unheard)

    def begin(self, request: Request) -> Request:
        # A request for a corrected call contains the searches of the answer before it.
        return replace(request, messages=with_past_searches(request.messages, self._form.past, self._function))

    def resume(self, request: Request) -> Request:
        """With the function as long as it may be used."""
        choice, tools = unforced(request.tool_choice), request.tools
        if self._searches >= self._uses:
            others = tuple(tool for tool in tools if tool.name != self._function)
            # The only tool stays in the list, unused: some servers refuse past calls in a request without tools.
            tools, choice = (
                (others, choice_without(choice, self._function)) if others else (tools, ToolChoice(mode="none"))
            )
        return replace(request, tools=tools, tool_choice=choice)

    def owns(self, call: ToolCall) -> bool:
        return self._function in (call.name, without_prefix(call.name))

    def start(self, call: ToolCall, place: Place) -> StartedCall:
        given = (call.args or {}).get("query")
        query = given if isinstance(given, str) else ""
        self._searches += 1
        shown = self._form.shown(query[:2000], new_id, place)
        return StartedCall(self._find(query, shown, is_left=self._searches <= self._uses), tuple(shown.call_events()))

    def count(self, usage: Usage) -> Usage:
        return replace(usage, extra=self._form.counted(min(self._searches, self._uses), usage.extra))

    async def _find(self, query: str, shown: SearchDisplay, *, is_left: bool) -> ToolOutcome:
        if is_left:
            found = await self._searcher.ask(query, self._wanted)
        else:
            found = SearchOutcome(fault="used_up", why=f"no more than {self._uses} searches may be made in one turn.")

        def show() -> list[Event]:
            fault: list[Event] = [Noted(note=Loss("web_search", "answer", found.why))] if found.fault else []
            return [*shown.found(found), *fault]

        return ToolOutcome(
            parts=(Text(text=outcome_text(found)),),
            is_error=bool(found.fault),
            is_refused=found.fault == "used_up",
            show=show,
        )
