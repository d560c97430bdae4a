"""Strict validation against the vendors' own types."""

from __future__ import annotations

import json
import types
import typing
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import pydantic


class Report:
    def __init__(self):
        self.items = []

    def err(self, path, msg):
        self.items.append(("ERROR", path, msg))

    def warn(self, path, msg):
        self.items.append(("WARN", path, msg))

    @property
    def errors(self):
        return [i for i in self.items if i[0] == "ERROR"]

    def text(self):
        return "\n".join(f"{a} {b}: {c}" for a, b, c in self.items)


@cache
def strip(kind):
    while get_origin(kind) is Annotated or isinstance(
        kind, typing.TypeAliasType if hasattr(typing, "TypeAliasType") else ()
    ):
        kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind.__value__
    return kind


@cache
def members(kind):
    kind = strip(kind)
    if get_origin(kind) in (Union, types.UnionType):
        out = []
        for a in get_args(kind):
            out += members(a)
        return out
    return [kind]


@cache
def fields(model):
    """Name, type and whether it is required. Cached, because every event of every stream needs it."""
    named = ((f.alias or f.serialization_alias or name, f) for name, f in model.model_fields.items())
    return [(name, f.annotation, f.is_required()) for name, f in named]


class Shape(NamedTuple):
    """The facts about a type that validation needs."""

    kind: Any
    members: list[Any]
    origin: Any
    args: tuple[Any, ...]
    is_free: bool
    is_null: bool
    is_model: bool


def shape(kind):
    """Cached by identity, because comparing such types takes longer than the validation."""
    found = _SHAPES.get(id(kind))
    if found is None:
        found = _SHAPES[id(kind)] = (_shape(strip(kind)), kind)  # keeps the type alive, so that its id is not reused
    return found[0]


_SHAPES = {}


def _shape(kind):
    is_model = isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
    is_free, is_null = kind in (Any, object), kind in (type(None), None)
    return Shape(kind, members(kind), get_origin(kind), get_args(kind), is_free, is_null, is_model)


@cache
def tag_of(model, key="type"):
    f = model.model_fields.get(key) if isinstance(model, type) and issubclass(model, pydantic.BaseModel) else None
    if f is not None:
        t = strip(f.annotation)
        ts = [x for m in members(t) if get_origin(m) is Literal for x in get_args(m)]
        return ts or None
    return None


def walk(kind, value, path, report, depth=0):
    kind, ms, o, args, is_free, is_null, is_model = shape(kind)
    if depth > 60 or is_free:
        return
    if len(ms) > 1:
        if value is None:
            if type(None) in ms or None in ms:
                return
            report.err(path, "null where a value is required")
            return
        ms = [m for m in ms if m not in (type(None), None)]
        if len(ms) == 1:
            walk(ms[0], value, path, report, depth + 1)
            return
        if isinstance(value, dict) and isinstance(value.get("type"), str):
            tagged = [m for m in ms if tag_of(m)]
            hit = [m for m in tagged if value["type"] in tag_of(m)]
            if hit:
                best = None
                for m in hit:
                    r = Report()
                    walk(m, value, path, r, depth + 1)
                    if best is None or len(r.errors) < len(best.errors):
                        best = r
                report.items += best.items
                return
            if tagged and len(tagged) == len(
                [m for m in ms if isinstance(m, type) and issubclass(m, pydantic.BaseModel)]
            ):
                report.err(
                    path + ".type", f"unknown type {value['type']!r}; not one of the {len(tagged)} official variants"
                )
                return
        best = None
        for m in ms:
            r = Report()
            walk(m, value, path, r, depth + 1)
            if not r.errors:
                report.items += r.items
                return
            if best is None or len(r.errors) < len(best.errors):
                best = r
        report.items += best.items
        return
    if is_null:
        if value is not None:
            report.err(path, f"expected null, got {short(value)}")
        return
    if o is Literal:
        if not any(value == x and type(value) is type(x) for x in args):
            report.err(path, f"{short(value)} is not one of {list(args)[:12]}")
        return
    if o in (list, list) or kind is list:
        if not isinstance(value, list):
            report.err(path, f"expected array, got {short(value)}")
            return
        for i, x in enumerate(value):
            walk(args[0] if args else Any, x, f"{path}[{i}]", report, depth + 1)
        return
    if o in (dict, dict) or kind is dict:
        if not isinstance(value, dict):
            report.err(path, f"expected object, got {short(value)}")
            return
        if args:
            for k, x in value.items():
                walk(args[1], x, f"{path}.{k}", report, depth + 1)
        return
    if is_model:
        if not isinstance(value, dict):
            report.err(path, f"expected object {kind.__name__}, got {short(value)}")
            return
        known = set()
        for name, annotation, is_required in fields(kind):
            known.add(name)
            if name not in value:
                if is_required:
                    report.err(path, f"{kind.__name__}: required field {name!r} is missing")
                continue
            walk(annotation, value[name], f"{path}.{name}", report, depth + 1)
        for k in value:
            if k not in known:
                report.warn(path, f"{kind.__name__}: field {k!r} is not in the official type")
        return
    if kind is bool:
        ok = isinstance(value, bool)
    elif kind is int:
        ok = isinstance(value, int) and not isinstance(value, bool)
    elif kind is float:
        ok = isinstance(value, (int, float)) and not isinstance(value, bool)
    elif kind is str:
        ok = isinstance(value, str)
    else:
        return
    if not ok:
        report.err(path, f"expected {kind.__name__}, got {short(value)}")


def short(value):
    s = json.dumps(value, ensure_ascii=True) if not isinstance(value, str) else repr(value)
    return s if len(s) < 80 else s[:77] + "..."
