"""Which servers constrain the output of a model to a JSON Schema.

The profile of a server says so where it is known. Any other server is tried once for each model, and the result is remembered. A server
that supports schemas may still refuse one that its grammars cannot express: that schema is remembered, and not sent to it again.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import blake2b
from typing import TypeAlias, TypeVar

from ..backends.base import Backend
from ..config.values import Grammar
from ..types import Json
from ..wire.exact_json import encode

_MOST = 1000  # models that are remembered, and schemas
_K = TypeVar("_K")
_Key: TypeAlias = tuple[str, str]  # back end and model


class GrammarSupport:
    """For one request. stated: what the profile or the owner says; None where only a trial shows it."""

    def __init__(self, memory: GrammarMemory, key: _Key, stated: bool | None) -> None:
        self._memory = memory
        self._key = key
        self._stated = stated

    @property
    def may_constrain(self) -> bool:
        return self._stated if self._stated is not None else self._memory.results.get(self._key, True)

    def record(self, *, works: bool) -> None:
        """Remember whether the model obeyed a schema. One failure is enough, because a server that supports schemas never fails."""
        if self._stated is None:
            results = self._memory.results
            results[self._key] = works and results.get(self._key, True)
            _trim(results, self._key)

    def record_refusal(self, schema: Json) -> None:
        """Remember that the server refused this schema, and accepted the same request without it."""
        self.record(works=False)
        if self._stated:
            refused, key = self._memory.refused, (*self._key, _digest(schema))
            refused[key] = True
            _trim(refused, key)

    def has_refused(self, schema: Json) -> bool:
        refused = self._memory.refused
        return bool(refused) and (*self._key, _digest(schema)) in refused


class GrammarMemory:
    """LRUs of the results by back end and model, and of refused schemas."""

    def __init__(self) -> None:
        self.results: OrderedDict[_Key, bool] = OrderedDict()
        self.refused: OrderedDict[tuple[str, str, bytes], bool] = OrderedDict()

    def support(self, backend: Backend, model: str, mode: Grammar) -> GrammarSupport:
        stated = backend.profile.has_output_schemas if mode == "auto" else mode == "on"
        return GrammarSupport(self, (backend.name, model), stated)


def no_grammar() -> GrammarSupport:
    return GrammarSupport(GrammarMemory(), ("", ""), stated=False)


def _digest(schema: Json) -> bytes:
    return blake2b(encode(schema), digest_size=16).digest()


def _trim(entries: OrderedDict[_K, bool], key: _K) -> None:
    """Drop the oldest entries; this one is the newest."""
    entries.move_to_end(key)
    while len(entries) > _MOST:
        entries.popitem(last=False)
