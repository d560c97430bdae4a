"""Which servers constrain the output of a model to a JSON Schema.

The profile of a server says so where it is known. Any other server is tried once for each model, and the result is remembered.
"""

from __future__ import annotations

from collections import OrderedDict

from ..backends.base import Backend
from ..config.values import Grammar

_MOST = 1000  # models that are remembered


class GrammarSupport:
    """For one request. is_known: the profile or the owner has stated it, so that nothing is learned."""

    def __init__(self, results: OrderedDict[tuple[str, str], bool], key: tuple[str, str], stated: bool | None) -> None:
        self._results = results
        self._key = key
        self._stated = stated

    @property
    def may_constrain(self) -> bool:
        return self._stated if self._stated is not None else self._results.get(self._key, True)

    def record(self, *, works: bool) -> None:
        """Remember whether the model obeyed a schema. One failure is enough, because a server that supports schemas never fails."""
        if self._stated is None:
            self._results[self._key] = works and self._results.get(self._key, True)
            self._results.move_to_end(self._key)
            while len(self._results) > _MOST:
                self._results.popitem(last=False)


class GrammarMemory:
    """An LRU of the results by back end and model."""

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[str, str], bool] = OrderedDict()

    def support(self, backend: Backend, model: str, mode: Grammar) -> GrammarSupport:
        stated = backend.profile.has_output_schemas if mode == "auto" else mode == "on"
        return GrammarSupport(self._results, (backend.name, model), stated)


def no_grammar() -> GrammarSupport:
    return GrammarSupport(OrderedDict(), ("", ""), stated=False)
