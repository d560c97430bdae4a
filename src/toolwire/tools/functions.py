"""Python functions as tools: the schema comes from type hints and docstring, arguments arrive as what the hints say.

    @tool
    def forecast(city: str, days: int = 3) -> list[Day]: ...

A parameter of the type Context is filled in and never shown to the model.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, overload

from ..errors import ConfigError, quote
from ..types import JsonObject, Tool
from .base import Output
from .context import Context, Progress, current, serving
from .hints import Unsupported
from .results import described, output_of
from .shapes import Mismatch
from .signatures import Signature, innermost, signature_of
from .threads import in_thread

__all__ = ["Context", "FunctionTool", "Progress", "current", "function_tool", "serving", "tool"]

_PACKAGE = __name__.partition(".")[0] + "."


class FunctionTool:
    """A function as a tool; called like the function, it is the function."""

    def __init__(self, function: Callable[..., Any], told: Tool, signature: Signature) -> None:
        self._function = function
        self._tool = told
        self._signature = signature
        self.changes_things = True
        self.timeout: float | None = None
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __repr__(self) -> str:
        return f"FunctionTool({self._tool.name!r})"

    @property
    def tool(self) -> Tool:
        return self._tool

    async def run(self, arguments: JsonObject) -> Output:
        """What it gives back; what it raises is an error for the model, and goes whole to the context's `failed`."""
        context = current()
        try:
            values = self._signature.shape.convert(arguments)
        except Mismatch as mismatch:
            return Output.of_text(f"The arguments do not fit; the call was not made. {mismatch}", is_error=True)
        except RecursionError:
            return Output.of_text("The arguments nest too deep; the call was not made.", is_error=True)
        try:
            return output_of(await self._call(values, context))
        except asyncio.CancelledError as error:
            if _is_cancelled():
                context.cancelled.set()
                raise
            return _failed(error, context)
        except (
            Exception,
            SystemExit,
        ) as error:  # a stranger's function may raise anything, and one call must not end the rest
            return _failed(error, context)

    async def _call(self, values: dict[str, Any], context: Context) -> Any:
        positional, named = self._signature.bound(values, context)
        call = functools.partial(self._function, *positional, **named)
        if self._signature.is_async:
            return await call()
        result = await in_thread(call)
        return await result if inspect.isawaitable(result) else result


def function_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    changes_things: bool | None = None,
) -> FunctionTool:
    """A tool that calls this function; ConfigError where it cannot be one. Functions that block run in a thread.

    Unless changes_things is False, a person may be asked before each call.
    """
    called = name or _name(function)
    try:
        signature = signature_of(function, _names_around())
    except (Unsupported, ValueError) as error:
        raise ConfigError(f"{quote(called)} cannot be a tool: {error}.", where="tools") from None
    told = Tool(name=called, description=description or signature.description or None, schema=signature.schema)
    made = FunctionTool(function, told, signature)
    made.timeout = timeout
    made.changes_things = changes_things is not False
    return made


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    changes_things: bool | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """function_tool() as a decorator, with or without options."""
    return function_tool(function) if function is not None else functools.partial(function_tool, **options)


def _failed(error: BaseException, context: Context) -> Output:
    context.failed(error)
    return Output.of_text(described(error), is_error=True)


def _is_cancelled() -> bool:
    """Whether it is we who are cancelled, and not something inside the function."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _name(function: Any) -> str:
    inner = innermost(function)
    name = str(getattr(inner, "__name__", type(inner).__name__))
    if name == "<lambda>":
        raise ConfigError("A lambda has no name that the model could call it by.", where="tools", hint="Pass name=...")
    return name


def _names_around() -> dict[str, Any]:
    """Local names where somebody outside this package makes the tool: classes defined there may stand in its hints."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        frame = frame.f_back
    return dict(frame.f_locals)
