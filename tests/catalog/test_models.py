from __future__ import annotations

import asyncio

import pytest

from toolwire.backends.base import Backend, EventReply, Model
from toolwire.catalog.models import Catalog
from toolwire.catalog.router import Router
from toolwire.config.policy import Policy
from toolwire.errors import BadRequest, UpstreamError
from toolwire.types import Request


class Listed(Backend):
    """A back end with a list of models; None: it cannot be reached."""

    dialect = "chat"

    def __init__(
        self, name: str, *models: str, is_reachable: bool = True, absence: UpstreamError | None = None
    ) -> None:
        self.name = name
        self._absence = absence
        self.fetched = 0
        self._models = models
        self._is_reachable = is_reachable

    @property
    def absence(self) -> UpstreamError | None:
        return self._absence

    async def models(self) -> list[Model]:
        self.fetched += 1
        if not self._is_reachable:
            raise UpstreamError("refused")
        return [Model(id=model) for model in self._models]

    async def open(self, request: Request, *, is_verbatim: bool) -> EventReply:
        raise AssertionError("the catalog sends no request")


def catalog(*backends: Listed, default: str = "", aliases: dict[str, str] | None = None) -> Catalog:
    router = Router([backend.name for backend in backends], aliases or {}, default, {})
    return Catalog({backend.name: backend for backend in backends}, router)


def test_the_list_has_the_models_of_all_back_ends_that_can_be_reached_and_the_aliases() -> None:
    async def main() -> None:
        found = catalog(
            Listed("a", "x", "y"), Listed("b", "z"), Listed("down", is_reachable=False), aliases={"fast": "b/z"}
        )
        assert [line.id for line in await found.models()] == ["a/x", "a/y", "b/z", "fast"]
        assert found.unlisted == ["down"]

    asyncio.run(main())


def test_a_listed_name_takes_precedence_over_the_default_and_lists_are_fetched_once() -> None:
    async def main() -> None:
        one, two = Listed("a", "x"), Listed("b", "y")
        found = catalog(one, two, default="a")
        assert (await found.route("y")).backend == "b"
        assert (await found.route("unknown")).backend == "a"
        assert (await found.route("b/anything")).backend == "b"
        assert (one.fetched, two.fetched) == (1, 1)
        assert await found.default_model() == "a/x"

    asyncio.run(main())


def test_a_default_that_cannot_answer_is_no_route() -> None:
    async def main() -> None:
        found = catalog(Listed("a", "x", absence=UpstreamError("not installed")), default="a")
        with pytest.raises(BadRequest, match="not installed") as caught:
            await found.route("unknown")
        assert caught.value.status == 404

    asyncio.run(main())


def test_a_back_end_may_announce_its_list() -> None:
    async def main() -> None:
        found = catalog(Listed("demo", "echo-tools"), Listed("b", is_reachable=False))
        assert [line.id for line in await found.models()] == ["demo/echo-tools"]
        found.note_models("b", [Model(id="a", also=("maker/a", "b"))])
        assert [line.id for line in await found.models()] == ["demo/echo-tools", "b/a"]
        for name in ("a", "b", "maker/a", "b/a"):
            assert (await found.route(name)).backend == "b"
        found.note_models("b", [])
        assert [line.id for line in await found.models()] == ["demo/echo-tools"]
        assert (await found.route("a")).backend == "b"

    asyncio.run(main())


def test_one_model_by_its_name_or_alias() -> None:
    async def main() -> None:
        found = catalog(Listed("a", "x"), aliases={"fast": "a/x", "other": "a/unlisted"})
        for name, expected in (("a/x", "a/x"), ("x", "x"), ("fast", "fast"), ("other", "other")):
            line = await found.model(name)
            assert line is not None
            assert line.id == expected

    asyncio.run(main())


def test_the_context_window_is_the_configured_one_before_the_listed_one() -> None:
    class Sized(Listed):
        async def models(self) -> list[Model]:
            return [Model(id="llama-8b", context=8192), Model(id="qwen", context=32768), Model(id="plain")]

    async def main() -> None:
        router = Router(["a"], {"fast": "a/llama-8b", "other": "a/llama-70b"}, "", {})
        found = Catalog({"a": Sized("a")}, router, {"a": Policy(context_windows={"llama-*": 16384, "*": 1})})
        windows = {line.id: line.context for line in await found.models()}
        assert windows == {"a/llama-8b": 16384, "a/qwen": 1, "a/plain": 1, "fast": 16384, "other": 16384}
        listed = Catalog({"a": Sized("a")}, router)
        assert [line.context for line in await listed.models()] == [8192, 32768, 0, 8192, 0]

    asyncio.run(main())
