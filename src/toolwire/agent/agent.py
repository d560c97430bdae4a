"""An agent: a model, its tools, and the limits of a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..config.file import Config
from ..errors import ConfigError, quote
from ..telemetry import Telemetry
from ..telemetry.record import NoTelemetry
from ..tools import Runnable, ToolSource
from ..tools.functions import function_tool
from ..types import Message, Request, Text, Thinking, Usage
from .blocking import iterate
from .conversation import Conversation, for_model, mark_model
from .events import CompleteEvent, Ending, LoopEvent
from .host import Host, host_at, host_of
from .loop import Hooks, Loop, Terms
from .shared_resource import SharedResource
from .toolbox import Approve

_TERMS = Terms()

AnyTool: TypeAlias = Callable[..., Any] | Runnable | ToolSource | Iterable[Any]
Keep: TypeAlias = Callable[[Conversation], None]


class Result(Struct, frozen=True, kw_only=True):
    """The outcome of a task."""

    text: str
    reason: Ending
    conversation: Conversation
    usage: Usage
    iterations: int


class Agent:
    """url: a running gateway. Without it the agent uses the back ends of config, by default of the file that the command line reads.

    With `async with`, connections and servers stay open between tasks. Otherwise each task opens them; concurrent tasks share them.
    """

    def __init__(
        self,
        model: str,
        tools: Iterable[AnyTool] = (),
        *,
        instructions: str = "",
        url: str = "",
        key: str = "",
        config: Config | Path | str | None = None,
        terms: Terms = _TERMS,
        approve: Approve | None = None,
        effort: str | None = None,
        answer_tokens: int | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.model = model
        self._telemetry = telemetry or NoTelemetry()
        # Here, because the hints of a function may refer to local names of the caller.
        self._given = tuple(tools_in(tools))
        self._instructions = instructions
        self._url, self._key, self._config = url, key, config
        self._terms = terms if approve is None else replace(terms, approve=approve)
        self._effort = effort
        self._answer_tokens = answer_tokens
        self._host = SharedResource(self._open)

    async def __aenter__(self) -> Agent:
        await self._host.acquire()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._host.release()

    async def run(self, prompt: str, conversation: Conversation | None = None, keep: Keep | None = None) -> Result:
        """Runs the task to its end. Raises GatewayError if the model cannot answer; keep gets the conversation in any case."""
        async with self._task(prompt, conversation, keep) as loop:
            ending: CompleteEvent | None = None
            async with aclosing(loop.events()) as events:
                async for event in events:
                    ending = event if isinstance(event, CompleteEvent) else ending
            if loop.failure is not None:
                raise loop.failure.fresh()
            assert ending is not None
            return Result(
                text=ending.text,
                reason=ending.reason,
                conversation=self._conversation(loop, conversation),
                usage=ending.usage,
                iterations=ending.iterations,
            )

    async def stream(
        self, prompt: str, conversation: Conversation | None = None, keep: Keep | None = None
    ) -> AsyncGenerator[LoopEvent, None]:
        """Yields events as they occur. keep gets the conversation at the end, also if the reader stops early; it is valid then, too."""
        async with self._task(prompt, conversation, keep) as loop, aclosing(loop.events()) as events:
            async for event in events:
                yield event

    def run_sync(self, prompt: str, conversation: Conversation | None = None, keep: Keep | None = None) -> Result:
        """run() for programs without an event loop. Raises ConfigError inside of one, for example in a notebook."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self.run(prompt, conversation, keep))
        raise ConfigError(
            "run_sync() cannot be used inside a running event loop.", hint="Write `await agent.run(...)` there."
        )

    def stream_sync(
        self, prompt: str, conversation: Conversation | None = None, keep: Keep | None = None
    ) -> Iterator[LoopEvent]:
        """stream() for programs without an event loop; keep and tools are called in another thread."""
        return iterate(lambda: self.stream(prompt, conversation, keep))

    async def _open(self, stack: AsyncExitStack) -> Host:
        host = host_at(self._url, self._key) if self._url else await host_of(self._config)
        stack.push_async_callback(host.close)
        for given in self._given:
            if isinstance(given, ToolSource):
                stack.push_async_callback(given.close)  # before open(), which may fail halfway
                await given.open()
        return host

    @asynccontextmanager
    async def _task(self, prompt: str, conversation: Conversation | None, keep: Keep | None) -> AsyncIterator[Loop]:
        async with self._host.use() as host:
            loop = await self._loop(host, prompt, conversation or Conversation())
            try:
                yield loop
            finally:
                if keep is not None:
                    keep(self._conversation(loop, conversation))

    async def _loop(self, host: Host, prompt: str, conversation: Conversation) -> Loop:
        head = (Message(role="system", parts=(Text(text=self._instructions),)),) if self._instructions else ()
        question = Message(role="user", parts=(Text(text=prompt),))
        request = Request(
            model=host.model(self.model),
            messages=(*head, *for_model(conversation.messages, self.model), question),
            max_tokens=self._answer_tokens,
            thinking=Thinking(effort=self._effort) if self._effort else None,
            stream=True,
            stream_usage=True,
        )
        hooks = Hooks(refresh=self._tools, telemetry=self._telemetry)
        return Loop(host.runtime, request, await self._tools(), self._terms, hooks=hooks)

    async def _tools(self) -> list[Runnable]:
        found = await runnables_of(self._given)
        names = [runnable.tool.name for runnable in found]
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
