"""An agent: a model, its tools, and the limits of a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, overload

from msgspec import Struct
from msgspec.structs import replace

from ..config.file import Config
from ..errors import ConfigError, UpstreamError, quote
from ..telemetry import Telemetry
from ..telemetry.record import NoTelemetry
from ..tools import Runnable, ToolSource
from ..tools.functions import caller_names, function_tool
from ..types import Message, Request, Text, Thinking, Usage
from .blocking import iterate
from .conversation import Conversation, for_model, mark_model
from .events import CompleteEvent, Ending, LoopEvent
from .hooks import AgentHooks
from .host import Host, host_at, host_of
from .loop import Hooks, Loop, Terms
from .output import OutputTool, OutputType
from .prompt import Prompt, message_of
from .shared_resource import SharedResource
from .toolbox import Approve

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with a default, which typing has from Python 3.13 on

    OutputT = TypeVar("OutputT", default=str)
else:
    from typing import TypeVar

    OutputT = TypeVar("OutputT")

_TERMS = Terms()

AnyTool: TypeAlias = Callable[..., Any] | Runnable | ToolSource | Iterable[Any]
Keep: TypeAlias = Callable[[Conversation], None]


class Result(Struct, Generic[OutputT], frozen=True, kw_only=True):
    """The outcome of a task.

    output: the answer as the agent's output_type; without one, the text. text: the answer as the model wrote it, or the JSON of the
    output. reason: why the task ended ("done", "max_iterations", "budget", ...). conversation: everything so far, to continue or save.
    usage: tokens of all requests. cost: by the prices of Terms, else those of the gateway, in US dollars; None if a price is unknown. iterations: number of requests to the model.
    """

    output: OutputT
    text: str
    reason: Ending
    conversation: Conversation
    usage: Usage
    iterations: int
    cost: float | None = None


class Agent(Generic[OutputT]):
    """A model, its tools, and the limits of a task. The model calls the tools until it answers.

    model: "backend/model", or an alias of the configuration.
    tools: functions, `@tool` objects, `MCP(...)`, `workspace(...)`, or lists of them.
    instructions: the system prompt.
    output_type: what the answer must be: a dataclass, TypedDict, NamedTuple, pydantic model, msgspec struct, or any other type that can be
    the parameter of a tool. The result has it as `output`. Without it the output is text.
    url, key: a running gateway. Without url the agent uses the back ends of config, by default of the file that the command line reads.
    terms: limits of a task. approve: decides about each call before it runs. hooks: see AgentHooks.
    effort: of reasoning, such as "low". answer_tokens: maximum length of one answer.

    With `async with`, connections and servers stay open between tasks. Otherwise each task opens them; concurrent tasks share them.
    """

    @overload
    def __init__(
        self: Agent[str],
        model: str,
        tools: Iterable[AnyTool] = (),
        *,
        instructions: str = "",
        url: str = "",
        key: str = "",
        config: Config | Path | str | None = None,
        terms: Terms = ...,
        approve: Approve | None = None,
        hooks: AgentHooks | None = None,
        effort: str | None = None,
        answer_tokens: int | None = None,
        telemetry: Telemetry | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        model: str,
        tools: Iterable[AnyTool] = (),
        *,
        output_type: type[OutputT],
        instructions: str = "",
        url: str = "",
        key: str = "",
        config: Config | Path | str | None = None,
        terms: Terms = ...,
        approve: Approve | None = None,
        hooks: AgentHooks | None = None,
        effort: str | None = None,
        answer_tokens: int | None = None,
        telemetry: Telemetry | None = None,
    ) -> None: ...

    def __init__(
        self,
        model: str,
        tools: Iterable[AnyTool] = (),
        *,
        output_type: Any = str,
        instructions: str = "",
        url: str = "",
        key: str = "",
        config: Config | Path | str | None = None,
        terms: Terms = _TERMS,
        approve: Approve | None = None,
        hooks: AgentHooks | None = None,
        effort: str | None = None,
        answer_tokens: int | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.model = model
        self._output_type = None if output_type is str else OutputType(output_type, caller_names())
        self._hooks = hooks
        self._telemetry = telemetry or NoTelemetry()
        # Here, because the hints of a function may refer to local names of the caller.
        self._given = tuple(tools_in(tools))
        self._instructions = instructions
        self._url, self._key, self._config = url, key, config
        self._terms = terms if approve is None else replace(terms, approve=approve)
        self._effort = effort
        self._answer_tokens = answer_tokens
        self._host = SharedResource(self._open)

    async def __aenter__(self) -> Agent[OutputT]:
        await self._host.acquire()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._host.release()

    async def run(
        self,
        prompt: Prompt,
        conversation: Conversation | None = None,
        keep: Keep | None = None,
        *,
        deps: Any = None,
    ) -> Result[OutputT]:
        """Runs the task to its end.

        prompt: text, or a list of texts, `image(...)` and `file(...)`. conversation: what it continues. keep: called with the
        conversation at the end, in any case. deps: an object for the tools, as `context.deps`.
        Raises GatewayError if the model cannot answer, or gives no answer of the output type (code "no_output").
        """
        async with self._task(prompt, conversation, keep, deps) as loop:
            ending: CompleteEvent | None = None
            async with aclosing(loop.events()) as events:
                async for event in events:
                    ending = event if isinstance(event, CompleteEvent) else ending
            if loop.failure is not None:
                raise loop.failure.fresh()
            assert ending is not None
            return self._result(ending, loop, conversation)

    async def stream(
        self,
        prompt: Prompt,
        conversation: Conversation | None = None,
        keep: Keep | None = None,
        *,
        deps: Any = None,
    ) -> AsyncGenerator[LoopEvent, None]:
        """Yields events as they occur; the last one is a CompleteEvent. Parameters as in run().

        keep gets the conversation at the end, also if the reader stops early; it is valid then, too.
        """
        async with self._task(prompt, conversation, keep, deps) as loop, aclosing(loop.events()) as events:
            async for event in events:
                yield event

    def run_sync(
        self,
        prompt: Prompt,
        conversation: Conversation | None = None,
        keep: Keep | None = None,
        *,
        deps: Any = None,
    ) -> Result[OutputT]:
        """run() for programs without `await`.

        Inside a running event loop, such as that of a notebook, the task runs in another thread, and the loop waits until it ends.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(prompt, conversation, keep, deps=deps))

        async def once() -> AsyncGenerator[Result[OutputT], None]:
            yield await self.run(prompt, conversation, keep, deps=deps)

        return next(iter(list(iterate(once))))

    def stream_sync(
        self,
        prompt: Prompt,
        conversation: Conversation | None = None,
        keep: Keep | None = None,
        *,
        deps: Any = None,
    ) -> Iterator[LoopEvent]:
        """stream() for programs without `await`; keep and tools are called in another thread."""
        return iterate(lambda: self.stream(prompt, conversation, keep, deps=deps))

    def _result(self, ending: CompleteEvent, loop: Loop, conversation: Conversation | None) -> Result[OutputT]:
        output: Any = ending.text
        if self._output_type is not None:
            if not loop.has_output:
                raise UpstreamError(
                    f"the model gave no answer of the output type; the task ended with reason {ending.reason!r}.",
                    code="no_output",
                    hint="The conversation has its answers. A simpler type or instructions may help.",
                )
            output = ending.output
        return Result(
            output=output,
            text=ending.text,
            reason=ending.reason,
            conversation=self._conversation(loop, conversation),
            usage=ending.usage,
            iterations=ending.iterations,
            cost=ending.cost,
        )

    async def _open(self, stack: AsyncExitStack) -> Host:
        host = host_at(self._url, self._key) if self._url else await host_of(self._config)
        stack.push_async_callback(host.close)
        for given in self._given:
            if isinstance(given, ToolSource):
                stack.push_async_callback(given.close)  # before open(), which may fail halfway
                await given.open()
        return host

    @asynccontextmanager
    async def _task(
        self, prompt: Prompt, conversation: Conversation | None, keep: Keep | None, deps: Any
    ) -> AsyncIterator[Loop]:
        question = message_of(prompt)
        async with self._host.use() as host:
            loop = await self._loop(host, question, conversation or Conversation(), deps)
            try:
                yield loop
            finally:
                if keep is not None:
                    keep(self._conversation(loop, conversation))

    async def _loop(self, host: Host, question: Message, conversation: Conversation, deps: Any) -> Loop:
        head = (Message(role="system", parts=(Text(text=self._instructions),)),) if self._instructions else ()
        request = Request(
            model=host.model(self.model),
            messages=(*head, *for_model(conversation.messages, self.model), question),
            max_tokens=self._answer_tokens,
            thinking=Thinking(effort=self._effort) if self._effort else None,
            stream=True,
            stream_usage=True,
        )
        hooks = Hooks(
            refresh=self._tools,
            telemetry=self._telemetry,
            user=self._hooks,
            deps=deps,
            output=None if self._output_type is None else OutputTool(self._output_type),
            prices=host.prices,
        )
        tools = await self._tools()
        _check_deps(tools, deps)
        return Loop(host.runtime, request, tools, self._terms, hooks=hooks)

    async def _tools(self) -> list[Runnable]:
        found = await runnables_of(self._given)
        names = [runnable.tool.name for runnable in found]
        if self._output_type is not None:
            names.append(self._output_type.tool.name)
        if duplicates := {name for name in names if names.count(name) > 1}:
            raise ConfigError(f"found several tools of one name: {', '.join(sorted(duplicates))}; give each its own.")
        return found

    def _conversation(self, loop: Loop, before: Conversation | None) -> Conversation:
        """Without the instructions, which belong to the agent."""
        messages = loop.messages[1 if self._instructions else 0 :]
        known = before.messages if before is not None else ()
        return Conversation(
            messages=(*known, *mark_model(messages, self.model, len(known))[len(known) :]), model=self.model
        )


async def runnables_of(given: AnyTool) -> list[Runnable]:
    """The current tools; sources must be open."""
    found: list[Runnable] = []
    for one in tools_in(given):
        found += await one.tools() if isinstance(one, ToolSource) else [one]
    return found


def tools_in(given: AnyTool) -> Iterator[Runnable | ToolSource]:
    """Flattens lists and makes tools of functions."""
    if isinstance(given, ToolSource | Runnable):
        yield given
    elif callable(given):
        yield function_tool(given)
    elif isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError(f"found {quote(given)} among the tools; expected a function, a tool, or a source of tools.")
    else:
        for one in given:
            yield from tools_in(one)


def _check_deps(tools: Iterable[Runnable], deps: Any) -> None:
    """Raises ConfigError if a tool declares another type of deps than the program passed."""
    for runnable in tools:
        expected = getattr(runnable, "deps_type", None)
        if expected is not None and not isinstance(deps, expected):
            raise ConfigError(
                f"the tool {quote(runnable.tool.name)} needs deps of type {expected.__name__}; found {type(deps).__name__}.",
                where="deps",
                hint="Pass it to run() or stream() as deps=...",
            )
