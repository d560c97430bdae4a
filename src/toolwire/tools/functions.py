"""Python functions as tools: type hints become the schema, and arguments arrive as the types of the hints.

    @tool
    def forecast(city: str, days: int = 3) -> list[Day]: ...

A parameter of type Context, or Context[Deps], is filled in and not part of the schema.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from typing import Any, get_args, get_origin, is_typeddict, overload

from msgspec import Struct

from ..errors import ConfigError, quote
from ..types import JsonObject, Tool
from . import docstrings
from .base import Output
from .constraints import constrain
from .containers import Member, object_of, optional
from .context import Context, Progress, current, is_task_cancelled, serving
from .hints import Hints, Unsupported
from .results import describe_error, output_of
from .shapes import ANY, Mismatch, Shape
from .threads import in_thread

__all__ = ["Context", "FunctionTool", "Progress", "ToolFailure", "current", "function_tool", "serving", "tool"]

_PACKAGE = __name__.partition(".")[0] + "."
_FIRST_DELAY, _MAX_DELAY = 0.1, 2.0  # seconds before a failed function is called again


class ToolFailure(Exception):
    """Raised by a function whose message is meant for the model. It is sent as it is, without the class, and not retried."""


class ToolOptions(Struct, frozen=True, kw_only=True):
    """timeout: seconds for one call with its retries. retries: how often the function is called again after an exception."""

    timeout: float | None = None
    retries: int = 0
    changes_things: bool = True


class FunctionTool:
    """A function as a tool. The tool can be called like the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        tool: Tool,
        signature: Signature,
        options: ToolOptions,
    ) -> None:
        self._function = function
        self._signature = signature
        self.tool = tool
        self.timeout = options.timeout
        self.changes_things = options.changes_things
        self.deps_type = signature.deps_type
        self._retries = options.retries
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)

    def __repr__(self) -> str:
        return f"FunctionTool({self.tool.name!r})"

    async def run(self, arguments: JsonObject) -> Output:
        """An exception of the function becomes an error for the model, and goes with its traceback to the context's `failed`."""
        context = current()
        try:
            values = self._signature.shape.convert(arguments)
        except Mismatch as mismatch:
            return Output.of_text(f"The arguments do not fit; the call was not made. {mismatch}", is_error=True)
        except RecursionError:
            return Output.of_text("The arguments nest too deep; the call was not made.", is_error=True)
        try:
            return output_of(await self._call_with_retries(values, context))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_task_cancelled():
                context.cancelled.set()
                raise
            if isinstance(error, ToolFailure) and str(error):
                return Output.of_text(str(error), is_error=True)
            context.failed(error)
            return Output.of_text(describe_error(error), is_error=True)

    async def _call_with_retries(self, values: dict[str, Any], context: Context[Any]) -> Any:
        """Cancellation, ToolFailure and SystemExit end it at once."""
        for retry in range(self._retries):
            try:
                return await self._call(values, context)
            except ToolFailure:
                raise
            except Exception as error:
                context.progress(f"retry {retry + 1} of {self._retries} after {type(error).__name__}")
                await asyncio.sleep(min(_FIRST_DELAY * 2**retry, _MAX_DELAY))
        return await self._call(values, context)

    async def _call(self, values: dict[str, Any], context: Context[Any]) -> Any:
        positional, named = self._signature.bind(values, context)
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
    retries: int = 0,
    changes_things: bool | None = None,
) -> FunctionTool:
    """A tool that calls this function; blocking functions run in a thread. Raises ConfigError if the function cannot be a tool.

    timeout: seconds that one call may take, with its retries. retries: how often the function is called again after an exception, with
    growing delays; the model sees the last one. Only use it for functions that can be repeated safely.

    Unless changes_things is False, the program may ask a person before each call.
    """
    name = name or _name(function)
    try:
        signature = signature_of(function, caller_names())
    except (Unsupported, ValueError) as error:
        raise ConfigError(f"{quote(name)} cannot be a tool: {error}.", where="tools") from None
    tool = Tool(name=name, description=description or signature.description or None, schema=signature.schema)
    if retries < 0:
        raise ConfigError(f"{quote(name)}: found retries={retries}; expected 0 or more.", where="tools")
    options = ToolOptions(timeout=timeout, retries=retries, changes_things=changes_things is not False)
    return FunctionTool(function, tool, signature, options)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
    retries: int = 0,
    changes_things: bool | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Makes a tool of a function: `@tool`, or `@tool(name=..., timeout=..., retries=...)` with the options of function_tool()."""
    return function_tool(function) if function is not None else functools.partial(function_tool, **options)


class Signature(Struct, frozen=True, kw_only=True):
    """shape converts the arguments of a call; contexts are the parameters of type Context, deps_type is what their deps must be."""

    schema: JsonObject
    shape: Shape
    description: str
    is_async: bool
    parameters: Mapping[str, Parameter]
    contexts: frozenset[str]
    deps_type: type | None = None

    def bind(self, values: dict[str, Any], context: Context[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments. values has every required parameter, because the shape accepted them."""
        given = {**values, **dict.fromkeys(self.contexts, context)}
        positional: list[Any] = []
        for name, parameter in self.parameters.items():
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                positional.append(given.pop(name) if name in given else _default_of(parameter))
            elif name not in given and _is_field(parameter.default):
                given[name] = _default_of(parameter)
        return positional, given


def signature_of(function: Callable[..., Any], names: Mapping[str, Any]) -> Signature:
    """Raises Unsupported if the function cannot be a tool. names: what hints may refer to besides the function's globals."""
    hinted = _hinted_function(function)
    if inspect.isgeneratorfunction(hinted) or inspect.isasyncgenfunction(hinted):
        raise Unsupported("it is a generator; return a list instead")
    hints = Hints({**getattr(hinted, "__globals__", {}), **names})
    resolved = hints.of(hinted)
    parameters = inspect.signature(function).parameters
    contexts = frozenset(name for name in parameters if _context_hints(resolved.get(name)))
    inner = innermost(function)
    documented = docstrings.parse(inspect.getdoc(type(inner) if _is_instance(inner) else inner))
    members: list[Member] = []
    rest: Shape | None = None
    for name, parameter in parameters.items():
        if name in contexts:
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            raise Unsupported(f"*{name} has no names to fill; take a list instead")
        if name in ("self", "cls") and name not in resolved:
            raise Unsupported(f"{name!r} is not bound; pass the method of an instance")
        try:
            shape = hints.shape(resolved[name]) if name in resolved else ANY
        except Unsupported as error:
            raise Unsupported(f"parameter {name!r}: {error}") from None
        if parameter.kind is Parameter.VAR_KEYWORD:
            rest = shape
        else:
            members.append(_member(name, parameter.default, shape, documented.parameters.get(name, "")))
    shape = object_of(members, dict, rest=rest)
    return Signature(
        schema=shape.schema | ({"$defs": hints.definitions} if hints.definitions else {}),
        shape=shape,
        description=documented.description,
        is_async=inspect.iscoroutinefunction(hinted),
        parameters=parameters,
        contexts=contexts,
        deps_type=_deps_type(resolved[name] for name in contexts),
    )


def _context_hints(hint: Any) -> list[Any]:
    """The hint, or those inside it (Context | None), that are Context or Context[...]."""
    return [each for each in (hint, *get_args(hint)) if each is Context or get_origin(each) is Context]


def _deps_type(hints: Iterable[Any]) -> type | None:
    """Dep of the hint Context[Dep], if objects can be checked against it."""
    for hint in hints:
        for found in _context_hints(hint):
            (inside,) = get_args(found) or (None,)
            inside = get_origin(inside) or inside
            if isinstance(inside, type) and not getattr(inside, "_is_protocol", False) and not is_typeddict(inside):
                return inside
    return None


def innermost(function: Any) -> Any:
    """Without functools.partial around it."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _name(function: Any) -> str:
    inner = innermost(function)
    name = str(getattr(inner, "__name__", type(inner).__name__))
    if name == "<lambda>":
        raise ConfigError("A lambda has no name that the model could call it by.", where="tools", hint="Pass name=...")
    return name


def caller_names() -> dict[str, Any]:
    """Local names of the first caller outside this package, because hints may refer to classes defined there."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        frame = frame.f_back
    return dict(frame.f_locals)


def _member(name: str, default: Any, shape: Shape, description: str) -> Member:
    has_default = default is not Parameter.empty
    if _is_field(default):
        shape, has_default = constrain(shape, [default]), not default.is_required()
        default = default.get_default() if has_default else None
    if has_default and default is None:
        shape = optional(shape)
    return Member(name=name, shape=shape, has_default=has_default, default=default, description=description)


def _hinted_function(function: Any) -> Any:
    """The function that has the hints."""
    inner = innermost(function)
    if inspect.isclass(inner):
        return inner.__init__
    inner = type(inner).__call__ if _is_instance(inner) else inner
    return inspect.unwrap(getattr(inner, "__func__", inner))


def _is_instance(function: Any) -> bool:
    """An instance of a class with __call__."""
    return not inspect.isroutine(function) and not inspect.isclass(function)


def _is_field(default: Any) -> bool:
    """pydantic's Field(...), written as a default."""
    return hasattr(default, "is_required") and hasattr(default, "get_default")


def _default_of(parameter: Parameter) -> Any:
    default = parameter.default
    return default.get_default(call_default_factory=True) if _is_field(default) else default
