"""How a function is called: which of its parameters the model fills, and how they become its arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, get_args

from msgspec import Struct

from ..types import JsonObject
from . import docstrings
from .constraints import annotated
from .containers import Member, object_of, optional
from .context import Context
from .hints import Hints, Unsupported
from .shapes import ANY, Shape


class Signature(Struct, frozen=True, kw_only=True):
    """shape converts the arguments of a call; contexts are the parameters that the model does not see."""

    schema: JsonObject
    shape: Shape
    description: str
    is_async: bool
    parameters: Mapping[str, Parameter]
    contexts: frozenset[str]

    def bound(self, values: dict[str, Any], context: Context) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments; those without a default have been given, or the shape had refused."""
        given = {**values, **dict.fromkeys(self.contexts, context)}
        positional: list[Any] = []
        for name, parameter in self.parameters.items():
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                positional.append(given.pop(name) if name in given else _default_of(parameter))
            elif name not in given and _is_field(parameter.default):
                given[name] = _default_of(parameter)
        return positional, given


def signature_of(function: Callable[..., Any], names: Mapping[str, Any]) -> Signature:
    """Unsupported says why it cannot be a tool; names are what its hints may mean besides the names of its module."""
    hinted = _hinted(function)
    if inspect.isgeneratorfunction(hinted) or inspect.isasyncgenfunction(hinted):
        raise Unsupported("it is a generator; return a list instead")
    hints = Hints({**getattr(hinted, "__globals__", {}), **names})
    resolved = hints.of(hinted)
    parameters = inspect.signature(function).parameters
    contexts = frozenset(name for name in parameters if _is_context(resolved.get(name)))
    documents = _documents(function)
    reader = _Reader(hints, resolved, documents.parameters)
    shape = reader.object_of({name: each for name, each in parameters.items() if name not in contexts})
    return Signature(
        schema=shape.schema | ({"$defs": hints.definitions} if hints.definitions else {}),
        shape=shape,
        description=documents.description,
        is_async=inspect.iscoroutinefunction(hinted),
        parameters=parameters,
        contexts=contexts,
    )


def innermost(function: Any) -> Any:
    """Without what functools.partial put around it."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


class _Reader:
    """Shapes for parameters, by their hints and what the docstring says of them."""

    def __init__(self, hints: Hints, resolved: Mapping[str, Any], described: Mapping[str, str]) -> None:
        self._hints = hints
        self._resolved = resolved
        self._described = described

    def object_of(self, parameters: Mapping[str, Parameter]) -> Shape:
        members: list[Member] = []
        rest: Shape | None = None
        for name, parameter in parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                raise Unsupported(f"*{name} has no names to fill; take a list instead")
            if parameter.kind is Parameter.VAR_KEYWORD:
                rest = self._shape(name)
            else:
                members.append(self._member(name, parameter.default))
        return object_of(members, dict, rest=rest)

    def _member(self, name: str, default: Any) -> Member:
        if name in ("self", "cls") and name not in self._resolved:
            raise Unsupported(f"{name!r} is not bound; pass the method of an instance")
        shape = self._shape(name)
        has_default = default is not Parameter.empty
        if _is_field(default):
            shape, has_default = annotated(shape, [default]), not default.is_required()
            default = default.get_default() if has_default else None
        if has_default and default is None:
            shape = optional(shape)
        description = self._described.get(name, "")
        return Member(name=name, shape=shape, has_default=has_default, default=default, description=description)

    def _shape(self, name: str) -> Shape:
        if name not in self._resolved:
            return ANY
        try:
            return self._hints.shape(self._resolved[name])
        except Unsupported as error:
            raise Unsupported(f"parameter {name!r}: {error}") from None


def _documents(function: Any) -> docstrings.Docstring:
    inner = innermost(function)
    return docstrings.parse(inspect.getdoc(type(inner) if _is_object(inner) else inner))


def _hinted(function: Any) -> Any:
    """The function that has the hints."""
    inner = innermost(function)
    if inspect.isclass(inner):
        return inner.__init__
    inner = type(inner).__call__ if _is_object(inner) else inner
    return inspect.unwrap(getattr(inner, "__func__", inner))


def _is_object(function: Any) -> bool:
    """An instance of a class with __call__."""
    return not inspect.isroutine(function) and not inspect.isclass(function)


def _is_context(hint: Any) -> bool:
    return hint is Context or Context in get_args(hint)


def _is_field(default: Any) -> bool:
    """Field(...) of pydantic, written as a default."""
    return hasattr(default, "is_required") and hasattr(default, "get_default")


def _default_of(parameter: Parameter) -> Any:
    default = parameter.default
    return default.get_default(call_default_factory=True) if _is_field(default) else default
