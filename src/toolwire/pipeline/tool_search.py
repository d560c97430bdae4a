"""Tool search: a model that cannot get all tools of the client gets the most relevant ones and a function that finds the others.

The function is one of the gateway's tools (gateway_tools.py): the client never sees its calls. Tools that a search finds are added to the
list of the next round. If the model calls a tool of the client beside a search, that call ends the answer, and what the search has found
is in the list of the client's next request.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from msgspec.structs import replace

from ..calls.search.index import ToolIndexes
from ..calls.search.selection import FOUND, SearchPlan, ToolCatalog, ToolLimits, is_fixed, token_total, tool_count
from ..calls.tools.names import without_prefix
from ..config.policy import ToolsBudget
from ..dialects.messages import tool_search as in_messages
from ..dialects.responses import tool_search as in_responses
from ..memory.tool_embeddings import ToolEmbeddings, merged
from ..offload import offload
from ..types import Loss, Opaque, Request, Text, Tool, ToolCall
from .gateway_tools import GatewayTools, Place, StartedCall, ToolOutcome
from .job import Job

NATIVE = {"messages": in_messages, "responses": in_responses}
DEFAULT_COUNT = 64  # tools at a time, where only the back end limits them
_NAME = "find_tools"
_USES = 5  # searches in one request
_LONGEST_LINE = 200
_LONGEST_ID = 200
_MOST_FOUND = 4096  # calls whose searches are remembered
_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": "What the tool should do, in a few words, with the name of the service.",
        }
    },
    "required": ["query"],
    "additionalProperties": False,
}


class FoundTools:
    """Which tools a search has found before a call, by owner, name and id of the call: an LRU cache, so that the next request of a
    conversation has the same list. Without an entry only the called tools are in the list."""

    def __init__(self, lock: AbstractContextManager[object] | None = None) -> None:
        self._lock = lock or nullcontext()
        self._names: OrderedDict[tuple[str, str, str], tuple[str, ...]] = OrderedDict()

    def add(self, owner: str, call: ToolCall, names: tuple[str, ...]) -> None:
        with self._lock:
            self._names[_key(owner, call)] = names
            while len(self._names) > _MOST_FOUND:
                self._names.popitem(last=False)

    def before(self, owner: str, call: ToolCall) -> tuple[str, ...]:
        return self._names.get(_key(owner, call), ())


def _key(owner: str, call: ToolCall) -> tuple[str, str, str]:
    return owner, call.name[:_LONGEST_ID], call.id[:_LONGEST_ID]  # some servers use the same ids in each answer


def search_plan(job: Job, most: int) -> SearchPlan | None:
    """None where the model gets all tools. most: how many the back end takes, 0 if any number."""
    policy, budget = job.policy, job.policy.tools_budget or ToolsBudget()
    is_untouched = job.guard == "off" and policy.tools_budget is None
    if policy.tool_search == "off" or is_untouched or not job.request.tools:
        return None
    why = _excess(job.request, budget, most)
    if not why:
        return None
    count = budget.count or (10_000 if budget.tokens else DEFAULT_COUNT)
    is_native = _is_native(job) and (not most or tool_count(job.request) <= most)  # deferred tools count, too
    if job.is_stored_upstream and not is_native:
        return None
    if most:
        count = min(count, max(1, most - 1 - bool(policy.max_result_tokens)))  # functions of the gateway count, too
    return SearchPlan(limits=ToolLimits(count, budget.tokens), why=why, is_native=is_native)


def _is_native(job: Job) -> bool:
    backend, is_wanted = job.backend, job.policy.tool_search == "auto"
    has_form = backend.dialect in NATIVE and "hosted" in backend.tool_kinds
    return is_wanted and has_form and backend.profile.has_tool_search(job.model)


def with_native_search(request: Request, plan: SearchPlan, indexes: ToolIndexes, dialect: str) -> tuple[Request, Loss]:
    """The request with the search of the back end, which loads all tools but the first ones when they are needed."""
    form, tools = NATIVE[dialect], request.tools
    parts = (part for message in request.messages for part in message.parts)
    found = {name for part in parts if isinstance(part, Opaque) for name in form.found_names(part)}
    loaded = ToolCatalog(tools, indexes.index(tools), plan.limits).loaded(request, found)
    listed = (tool if tool.name in loaded or is_fixed(tool) else form.deferred(tool) for tool in tools)
    why = f"{plan.why}: the model gets {len(loaded)} of {len(tools)} tools, and the search of the back end loads the others"
    return replace(request, tools=(form.SEARCH_TOOL, *listed), has_new_tools=True), Loss("tools.search", "tools", why)


class ToolSearch(GatewayTools):
    """The search of one request."""

    def __init__(
        self,
        plan: SearchPlan,
        indexes: ToolIndexes,
        memory: FoundTools,
        owner: str,
        embeddings: ToolEmbeddings | None = None,
    ) -> None:
        """embeddings: to search by meaning, too."""
        self._plan = plan
        self._embeddings = embeddings
        self._indexes = indexes
        self._memory = memory
        self._owner = owner
        self._catalog: ToolCatalog | None = None
        self._function = ""
        self._allowed: tuple[str, ...] = ()
        self._found: dict[str, None] = {}
        self._searches = 0

    def begin(self, request: Request) -> Request:
        if len(request.tools) <= 1:  # a correction that needs no tools
            self._catalog = None
            return request
        tools = request.tools
        self._catalog = ToolCatalog(tools, self._indexes.index(tools), self._plan.limits)
        self._function = _free_name(tools) if request.sampling.choices == 1 else ""
        if self._embeddings is not None and self._function:
            self._embeddings.prepare(tools)
        choice = request.tool_choice
        self._allowed = choice.names if choice is not None and choice.mode == "allowed" else ()
        selected = self._with_tools(request)
        hidden = len(tools) - len(selected.tools) + bool(self._function)
        way = f"the model finds the others with {self._function}" if self._function else "the others cannot be called"
        shown = f"the model gets {len(tools) - hidden} of {len(tools)} tools"
        self.losses = (Loss("tools.search", "tools", f"{self._plan.why}: {shown}, and {way}"),) if hidden else ()
        return selected

    def resume(self, request: Request) -> Request:
        return request if self._catalog is None else self._with_tools(request)

    def owns(self, call: ToolCall) -> bool:
        return bool(self._function) and self._function in (call.name, without_prefix(call.name))

    def start(self, call: ToolCall, place: Place) -> StartedCall:
        self._searches += 1
        return StartedCall(self._find(call, is_left=self._searches <= _USES))

    def end(self, calls: list[ToolCall], text: str) -> None:
        if self._found:
            names = tuple(self._found)
            for call in calls:
                self._memory.add(self._owner, call, names)

    def _with_tools(self, request: Request) -> Request:
        """With the selected tools, and with the function as long as it may be used."""
        assert self._catalog is not None
        tools = self._catalog.select(request, self._found, partial(self._memory.before, self._owner))
        if self._function and self._searches < _USES:
            tools = (_function(self._function, self._catalog), *tools)
        return replace(request, tools=tools, has_new_tools=True, wire=b"")

    async def _find(self, call: ToolCall, *, is_left: bool) -> ToolOutcome:
        query = (call.args or {}).get("query")
        if not is_left:
            text = f"No more than {_USES} searches may be made in one turn. Answer with the tools that you have."
            return ToolOutcome(parts=(Text(text=text),), is_error=True, is_refused=True)
        if not isinstance(query, str) or not query.strip() or self._catalog is None:
            text = 'Expected {"query": "..."} with a few words about what the tool should do.'
            return ToolOutcome(parts=(Text(text=text),), is_error=True)
        names = await self._names(self._catalog, query)
        self._found.update(dict.fromkeys(names))
        return ToolOutcome(parts=(Text(text=_listing(self._catalog, names)),))

    async def _names(self, catalog: ToolCatalog, query: str) -> tuple[str, ...]:
        names = catalog.find(query, self._allowed)
        if self._embeddings is None:
            return names
        close = await offload(self._embeddings.rank, catalog.tools, query)
        return merged(names, [name for name in close if not self._allowed or name in self._allowed], FOUND)


def _excess(request: Request, budget: ToolsBudget, most: int) -> str:
    """Which limit the tools exceed, "" where they exceed none."""
    tools = request.tools
    if 0 < most < tool_count(request):
        return f"the back end takes {most} tools"
    if budget.count and budget.count < len(tools) - sum(map(is_fixed, tools)):
        return f"tools_budget is {budget.count} tools"
    if budget.tokens and budget.tokens < token_total(tools):
        return f"tools_budget is {budget.tokens} tokens"
    return ""


def _free_name(tools: tuple[Tool, ...]) -> str:
    taken, name, number = {tool.name for tool in tools}, _NAME, 1
    while name in taken:
        number += 1
        name = f"{_NAME}_{number}"
    return name


def _function(name: str, catalog: ToolCatalog) -> Tool:
    overview = catalog.overview()
    text = (
        f"Finds more tools. Only some of the {len(catalog.tools)} available tools are listed; if none of these fits, describe here what "
        "you need. The tools that are found can be called immediately afterwards."
    )
    return Tool(name=name, description=f"{text} Available: {overview}." if overview else text, schema=_SCHEMA)


def _listing(catalog: ToolCatalog, names: tuple[str, ...]) -> str:
    if not names:
        return "No tool has these words. Try other words, or answer without a tool."
    described = {tool.name: " ".join((tool.description or "").split()) for tool in catalog.tools}
    lines = [f"- {name}: {described[name]}"[:_LONGEST_LINE] for name in names]
    return "\n".join(["These tools can be called now:", *lines])
