"""What the official SDKs' request types reject: a missing member, one of another type, or one that the type does not have."""

from __future__ import annotations

import collections.abc
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
)

from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ValidationError
from typing_extensions import get_type_hints, is_typeddict

from tests.contract.sdk.google import Content
from tests.contract.strict.refusals import Refused

_ITEMS: dict[str, tuple[str, Any]] = {
    "chat": ("messages", ChatCompletionMessageParam),
    "responses": ("input", ResponseInputItemParam),
    "messages": ("messages", MessageParam),
}
# Members that servers of the dialect accept beyond its types.
_MORE = {"chat": frozenset({"reasoning_content", "cache_control", "name"})}
_Fault = tuple[int, str]  # how deep it is, and what it is: of several readings the deepest fault says most


def check(dialect: str, body: dict[str, Any]) -> None:
    if dialect == "gemini":
        _check_gemini(body)
        return
    member, kind = _ITEMS[dialect]
    given = body[member]
    for index, item in enumerate([] if isinstance(given, str) else given):
        if dialect == "responses" and isinstance(item, dict) and isinstance(item.get("content"), str):
            item = {key: value for key, value in item.items() if key != "id"}  # the API accepts ids there, too
        if fault := _fault(kind, item, f"{member}[{index}]", _MORE.get(dialect, frozenset()), 0):
            raise Refused(fault[1], f"{member}[{index}]")


def _check_gemini(body: dict[str, Any]) -> None:
    for index, content in enumerate(body["contents"]):
        parts = content.get("parts")
        if isinstance(parts, str | dict):  # forms that the API accepts
            parts = [parts]
        parts = [{"text": part} if isinstance(part, str) else part for part in parts]
        try:
            Content.model_validate({**content, "parts": parts})
        except ValidationError as error:
            raise Refused(str(error), f"contents[{index}]") from None


@cache
def _members(kind: Any) -> dict[str, tuple[Any, bool]]:
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        is_needed = name in kind.__required_keys__
        while get_origin(hint) in (Required, NotRequired, Annotated):
            hint = get_args(hint)[0]
        found[name] = (hint, is_needed)
    return found


def _fault(kind: Any, value: Any, where: str, more: frozenset[str], depth: int) -> _Fault | None:
    while get_origin(kind) in (Required, NotRequired, Annotated):
        kind = get_args(kind)[0]
    origin = get_origin(kind)
    if kind in (Any, object) or getattr(kind, "__name__", "") == "Path":
        return None
    if origin in (Union, UnionType):
        faults = [_fault(one, value, where, more, depth) for one in get_args(kind)]
        return None if None in faults else max(fault for fault in faults if fault is not None)
    if origin is Literal:
        return None if value in get_args(kind) else (depth, f"{where} is {value!r}")
    if is_typeddict(kind):
        return _object_fault(kind, value, where, more, depth)
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        if not isinstance(value, list):
            return depth, f"{where} is no list"
        faults = [_fault(get_args(kind)[0], one, f"{where}[{n}]", more, depth + 1) for n, one in enumerate(value)]
        return next((fault for fault in faults if fault), None)
    if origin in (dict, collections.abc.Mapping):
        return None if isinstance(value, dict) else (depth, f"{where} is no object")
    if kind in (NoneType, None):
        return None if value is None else (depth, f"{where} is not null")
    if kind is float:
        kind = (int, float)
    if kind not in (str, int, bool, (int, float)):  # files and the like, which JSON has not
        return depth, f"{where} is no {kind}"
    is_right = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    return None if is_right else (depth, f"{where} is {value!r}, no {kind}")


def _object_fault(kind: Any, value: Any, where: str, more: frozenset[str], depth: int) -> _Fault | None:
    if not isinstance(value, dict):
        return depth, f"{where} is {value!r}, no object"
    members = _members(kind)
    tags = [key for key in ("type", "role") if key in members and key in value]
    for key in tags:  # first, so that the fault of the meant type is the deepest
        if fault := _fault(members[key][0], value[key], f"{where}.{key}", more, depth):
            return fault
    depth += len(tags)
    for name, (hint, is_needed) in members.items():
        if name not in value:
            if is_needed:
                return depth, f"{where}.{name} is missing"
        elif fault := _fault(hint, value[name], f"{where}.{name}", more, depth + 1):
            return fault
    unknown = value.keys() - members.keys() - more
    return (depth, f"{where} has {sorted(unknown)}") if unknown else None
