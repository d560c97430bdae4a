"""How functions are called."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import pytest

from toolwire.tools.context import Context
from toolwire.tools.hints import Unsupported
from toolwire.tools.signatures import innermost, signature_of


def work(first: int, second: int = 2, /, *, third: str = "x", context: Context) -> None:
    """Work."""


async def wait() -> None: ...


def test_arguments_are_put_where_they_belong() -> None:
    signature = signature_of(work, {})
    context = Context()
    assert signature.bound({"first": 1, "third": "y"}, context) == ([1, 2], {"third": "y", "context": context})
    assert signature.contexts == {"context"}
    assert signature.description == "Work."


def test_asynchronous_ones_are_known() -> None:
    class Called:
        async def __call__(self) -> None: ...

    functions = [wait, functools.partial(wait), Called(), work]
    assert [signature_of(function, {}).is_async for function in functions] == [True, True, True, False]


def test_partials_are_looked_through() -> None:
    assert innermost(functools.partial(functools.partial(work, 1), second=2)) is work


def test_nothing_of_the_surroundings_is_kept() -> None:
    class Large:
        pass

    names: dict[str, Any] = {"large": Large()}
    watched = weakref.ref(names["large"])
    signature = signature_of(work, names)
    names.clear()
    gc.collect()
    assert watched() is None
    assert signature.shape.convert({"first": 1}) == {"first": 1}


def test_faults_name_the_parameter() -> None:
    def odd(good: int, bad: complex) -> None: ...

    with pytest.raises(Unsupported, match="parameter 'bad': complex"):
        signature_of(odd, {})
