"""Runs the calls of mounted tools: arguments are checked, calls are counted, and results are bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeAlias

from msgspec.structs import replace

from ...calls.arguments import Invalid, judge, tool_error
from ...calls.schemas import Schemas
from ...calls.tools.encoded_arguments import ArgumentDecoder
from ...calls.validation import ToolOffer
from ...events import Event, Noted
from ...tools.base import Output
from ...tools.runner import Bounds, FinishedCall, run_all
from ...types import JsonObject, Loss, Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult
from ...wire.exact_json import encode
from ..gateway_tools import GatewayTools, Place, StartedCall, ToolOutcome, choice_without, unforced
from .offer import CallRate, MountedOffer, MountedTool

Remember: TypeAlias = Callable[[list[ToolCall], str, tuple[Message, ...]], None]


class CallRunner:
    """Runs calls for one key. rate: of all requests."""

    def __init__(self, schemas: Schemas, rate: CallRate, key: str) -> None:
        self._schemas = schemas
        self._rate = rate
        self._key = key

    async def run(self, mounted: MountedTool, call: ToolCall, *, may_repair: bool) -> Output:
        """Every failure is an output. Nothing that is missing at the end of the arguments is filled in: the answer may have been cut."""
        tool, server = mounted.runnable.tool, mounted.server
        verdict = judge(call, tool, self._schemas, is_cut=True, may_repair=may_repair)
        if isinstance(verdict, Invalid):
            return Output.of_text(encode(tool_error(replace(tool, name=call.name), verdict)).decode(), is_error=True)
        if not self._rate.admit(server, self._key):
            text = f"No more than {server.calls_per_minute} calls of {server.name} may be made in one minute. Try again later."
            return Output.of_text(text, is_error=True)
        arguments: JsonObject = verdict.args or {}
        bounds = Bounds(timeout=server.timeout, max_output=server.max_output)
        async with aclosing(run_all([(call, mounted.runnable, arguments)], bounds)) as running:
            async for item in running:
                if isinstance(item, FinishedCall):
                    return item.output
        raise AssertionError("run_all yields one result for each call")


class MountedTools(GatewayTools):
    """The mounted tools of one request. names: finds a tool by the name that the model uses. choice: the client's. remember: gets the calls
    and the text of the answer, and the rounds before them."""

    def __init__(
        self,
        offer: MountedOffer,
        names: ToolOffer,
        runner: CallRunner,
        choice: ToolChoice | None,
        decoder: ArgumentDecoder | None,
        *,
        may_repair: bool,
        remember: Remember | None = None,
    ) -> None:
        self._remember = remember
        self._made: list[Message] = []
        self._offer = offer
        self._names = names
        self._runner = runner
        self._decoder = decoder
        self._may_repair = may_repair
        self._allowed = None if choice is None or choice.mode != "allowed" else frozenset(choice.names)
        self._is_barred = choice is not None and choice.mode == "none"
        self._calls = Counter[str]()  # by server

    def begin(self, request: Request) -> Request:
        return request

    def resume(self, request: Request) -> Request:
        """Without the tools of servers that may not be called again."""
        choice, tools = unforced(request.tool_choice), request.tools
        over = {tool.name for tool in tools if self._is_over(tool)}
        if over:
            others = tuple(tool for tool in tools if tool.name not in over)
            for name in over:
                choice = choice_without(choice, name)
            # The last tools stay in the list, unused: some servers refuse past calls in a request without tools.
            tools, choice = (others, choice) if others else (tools, ToolChoice(mode="none"))
        return replace(request, tools=tools, tool_choice=choice, has_new_tools=True, wire=b"")

    def owns(self, call: ToolCall) -> bool:
        mounted = self._mounted(call.name)
        return mounted is not None and not mounted.is_returned

    def start(self, call: ToolCall, place: Place) -> StartedCall:
        mounted = self._mounted(call.name)
        assert mounted is not None
        server = mounted.server
        self._calls[server.name] += 1
        return StartedCall(self._run(mounted, call, is_left=self._calls[server.name] <= server.max_calls))

    def end(self, calls: list[ToolCall], text: str) -> None:
        if self._made and self._remember is not None:
            self._remember(calls, text, tuple(self._made))

    def _mounted(self, name: str) -> MountedTool | None:
        """None for a tool of the client, and for one that may not be called now."""
        tool = self._names.tool(name)
        if tool is None or tool.namespace or self._is_barred:
            return None
        return self._offer.tools.get(tool.name) if self._allowed is None or tool.name in self._allowed else None

    def _is_over(self, tool: Tool) -> bool:
        mounted = self._mounted(tool.name)
        return mounted is not None and self._calls[mounted.server.name] >= mounted.server.max_calls

    async def _run(self, mounted: MountedTool, call: ToolCall, *, is_left: bool) -> ToolOutcome:
        name, server = mounted.runnable.tool.name, mounted.server
        if not is_left:
            text = f"No more than {server.max_calls} calls of {server.name} may be made in one turn. Answer with what you have."
            return ToolOutcome(parts=(Text(text=text),), is_error=True, is_refused=True)
        decoded = call if self._decoder is None else self._decoder.call(call)
        output = await self._runner.run(mounted, decoded, may_repair=self._may_repair)
        made = replace(decoded, name=name, namespace="")
        result = ToolResult(call_id=made.id, parts=output.parts, is_error=output.is_error, name=name)
        self._made += [Message(role="assistant", parts=(made,)), Message(role="tool", parts=(result,))]

        def show() -> list[Event]:
            return [Noted(note=Loss("mcp.call", f"call {name}", "it failed, and the model got the error"))]

        return ToolOutcome(parts=output.parts, is_error=output.is_error, show=show if output.is_error else None)
