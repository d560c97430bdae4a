"""Streams that lie: each kind of nasty answer, from each kind of server, comes out right in each client's dialect, or as its error.

Never a normal end where the server's answer was cut or broken, never a call that is not whole, never a word twice or lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest

from tests.server.conftest import backends_of
from tests.server.harness import CLOSE, LAST_CHUNK, Upstream, chunk, gateway, server_config, stream_head
from tests.thorough import is_thorough
from toolwire.config.file import Config, with_backends

from .asking import Reply, ask, request_for
from .nasty.catalogue import catalogue
from .nasty.examining import faults
from .nasty.kinds import DIALECTS, Nasty
from .nasty.playing import Played, Stage, pieces, stage

KINDS = catalogue()
TITLES = [nasty.title for nasty in KINDS]
LONG_WIRE = 20_000  # byte by byte, longer ones only take longer


class Cell(NamedTuple):
    """Who asks, how, and in which pieces the answer comes."""

    client: str
    is_stream: bool
    way: str = "auto"
    chunking: str = "random"


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opened = runner.run(stack.enter_async_context(stage()))
        yield Theatre(runner, opened)
        runner.run(stack.aclose())


class Theatre:
    """One application for all plays of a module."""

    def __init__(self, runner: asyncio.Runner, opened: Stage) -> None:
        self._runner = runner
        self._stage = opened

    def play(self, number: int, cells: list[Cell]) -> list[str]:
        """What is wrong with what the clients get."""
        return self._runner.run(self._play(number, KINDS[number], cells))

    async def _play(self, number: int, nasty: Nasty, cells: list[Cell]) -> list[str]:
        found: list[str] = []
        for cell in cells:
            request = _request(nasty, cell, f"{cell.way}-{nasty.dialect}/m")
            played = Played(pieces(nasty.wire, cell.chunking, number), nasty.kind, is_cut=nasty.is_cut)
            reply = await self._stage.ask(cell.client, request, played)
            found += [f"{cell}: {fault}\n{reply.body[:2000]!r}" for fault in faults(nasty, cell.client, request, reply)]
        return found


def _request(nasty: Nasty, cell: Cell, model: str) -> dict[str, Any]:
    return request_for(cell.client, model, "hi", stream=cell.is_stream, usage=nasty.asks_usage)


def _quick(number: int, nasty: Nasty) -> Cell:
    """Every second time the way on which bytes pass untouched, and all others in turn."""
    if number % 2:
        return Cell(nasty.dialect, True)
    others = [Cell(client, is_stream) for client in DIALECTS for is_stream in (True, False) if client != nasty.dialect]
    others += [Cell(nasty.dialect, False), Cell(nasty.dialect, True, "never"), Cell(nasty.dialect, False, "never")]
    return others[number // 2 % len(others)]


def _many(number: int, nasty: Nasty) -> list[Cell]:
    """Every client and both ways; whether streamed, and in which pieces, by turns."""
    if is_thorough():
        return _everything(nasty)
    cells = [Cell(client, (place + number) % 2 == 0) for place, client in enumerate(DIALECTS)]
    cells.append(Cell(nasty.dialect, number // 2 % 2 == 0, "never"))
    chunking = ("bytes" if len(nasty.wire) < LONG_WIRE else "", "", "whole", "")[number % 4]
    return [*cells, Cell(nasty.dialect, True, "auto", chunking)] if chunking else cells


def _everything(nasty: Nasty) -> list[Cell]:
    cells = [Cell(client, is_stream) for client in DIALECTS for is_stream in (True, False)]
    cells += [Cell(nasty.dialect, is_stream, "never") for is_stream in (True, False)]
    cells.append(Cell(nasty.dialect, True, "auto", "whole"))
    return [*cells, Cell(nasty.dialect, True, "auto", "bytes")] if len(nasty.wire) < LONG_WIRE else cells


@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_a_hundred_kinds_of_each_server(dialect: str) -> None:
    own = [nasty for nasty in KINDS if nasty.dialect == dialect]
    assert len({nasty.name.removesuffix(", whole") for nasty in own}) >= 200
    assert len({(nasty.wire, nasty.kind, nasty.is_cut) for nasty in own}) >= 200
    assert [name for name, count in Counter(nasty.name for nasty in own).items() if count > 1] == []
    assert 50 <= sum(nasty.expected.error is not None for nasty in own) <= len(own) // 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_H001_H008_H010_H015_H029_H050_H114_H154_each_kind_once(theatre: Theatre, dialect: str) -> None:
    own = [(number, nasty) for number, nasty in enumerate(KINDS) if nasty.dialect == dialect]
    found = {nasty.name: theatre.play(number, [_quick(number, nasty)]) for number, nasty in own}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(KINDS)), ids=TITLES)
def test_H002_H006_H007_H011_H012_H013_H017_H028_H030_H031_H049_H051_H071_H109_each_kind_everywhere(
    theatre: Theatre, number: int
) -> None:
    assert theatre.play(number, _many(number, KINDS[number])) == []


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture(scope="module")
def connection(upstream: Upstream) -> Iterator[HTTPConnection]:
    config = Config(server=server_config())
    with gateway(with_backends(config, backends_of(upstream))) as running:
        opened = HTTPConnection("127.0.0.1", running.port, timeout=30)
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_H148_H150_over_the_network_it_is_the_same(
    connection: HTTPConnection, upstream: Upstream, dialect: str
) -> None:
    found = []
    for number, nasty in enumerate(KINDS):
        if nasty.dialect == dialect:
            cell = _quick(number, nasty)
            reply = _ask_over_network(connection, upstream, nasty, cell)
            request = _request(nasty, cell, "m")
            found += [f"{nasty.title}: {cell}: {fault}" for fault in faults(nasty, cell.client, request, reply)]
    assert found == []
    assert threading.active_count() < 50


def _ask_over_network(connection: HTTPConnection, upstream: Upstream, nasty: Nasty, cell: Cell) -> Reply:
    parts = pieces(nasty.wire, "frames")
    upstream.on("m", [stream_head(nasty.kind), *map(chunk, parts), CLOSE if nasty.is_cut else LAST_CHUNK])
    model = f"{nasty.dialect}{'' if cell.way == 'auto' else '-anew'}/m"
    return ask(connection, cell.client, "key", _request(nasty, cell, model))
