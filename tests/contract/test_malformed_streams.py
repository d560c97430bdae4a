"""Malformed answers: each kind, from each kind of server, becomes a correct answer or error in each client's dialect.

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
from toolwire.config.file import BackendConfig, Config, with_backends

from .client_requests import Reply, ask, request_for
from .malformed.catalogue import catalogue
from .malformed.comparison import faults
from .malformed.gateway import Stage, UpstreamReply, pieces, stage
from .malformed.kinds import DIALECTS, Malformed

KINDS = catalogue()
TITLES = [malformed.title for malformed in KINDS]
LONG_WIRE = 20_000  # byte by byte, longer ones only take longer


class Cell(NamedTuple):
    """Who asks, how, and in which pieces the answer comes."""

    client: str
    is_stream: bool
    way: str = "auto"
    chunking: str = "random"


@pytest.fixture(scope="module")
def player() -> Iterator[StreamPlayer]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        opened = runner.run(stack.enter_async_context(stage()))
        yield StreamPlayer(runner, opened)
        runner.run(stack.aclose())


class StreamPlayer:
    """One application for all plays of a module."""

    def __init__(self, runner: asyncio.Runner, opened: Stage) -> None:
        self._runner = runner
        self._stage = opened

    def play(self, number: int, cells: list[Cell]) -> list[str]:
        """What is wrong with what the clients get."""
        return self._runner.run(self._play(number, KINDS[number], cells))

    async def _play(self, number: int, malformed: Malformed, cells: list[Cell]) -> list[str]:
        found: list[str] = []
        for cell in cells:
            request = _request(malformed, cell, f"{cell.way}-{malformed.dialect}/m")
            upstream_reply = UpstreamReply(
                pieces(malformed.wire, cell.chunking, number), malformed.kind, is_cut=malformed.is_cut
            )
            reply = await self._stage.ask(cell.client, request, upstream_reply)
            found += [
                f"{cell}: {fault}\n{reply.body[:2000]!r}" for fault in faults(malformed, cell.client, request, reply)
            ]
        return found


def _request(malformed: Malformed, cell: Cell, model: str) -> dict[str, Any]:
    return request_for(cell.client, model, "hi", stream=cell.is_stream, usage=malformed.asks_usage)


def _quick(number: int, malformed: Malformed) -> Cell:
    """Every second time the way on which bytes pass untouched, and all others in turn."""
    if number % 2:
        return Cell(malformed.dialect, True)
    others = [
        Cell(client, is_stream) for client in DIALECTS for is_stream in (True, False) if client != malformed.dialect
    ]
    others += [
        Cell(malformed.dialect, False),
        Cell(malformed.dialect, True, "never"),
        Cell(malformed.dialect, False, "never"),
    ]
    return others[number // 2 % len(others)]


def _many(number: int, malformed: Malformed) -> list[Cell]:
    """Every client and both ways; whether streamed, and in which pieces, by turns."""
    if is_thorough():
        return _everything(malformed)
    cells = [Cell(client, (place + number) % 2 == 0) for place, client in enumerate(DIALECTS)]
    cells.append(Cell(malformed.dialect, number // 2 % 2 == 0, "never"))
    chunking = ("bytes" if len(malformed.wire) < LONG_WIRE else "", "", "whole", "")[number % 4]
    return [*cells, Cell(malformed.dialect, True, "auto", chunking)] if chunking else cells


def _everything(malformed: Malformed) -> list[Cell]:
    cells = [Cell(client, is_stream) for client in DIALECTS for is_stream in (True, False)]
    cells += [Cell(malformed.dialect, is_stream, "never") for is_stream in (True, False)]
    cells.append(Cell(malformed.dialect, True, "auto", "whole"))
    return [*cells, Cell(malformed.dialect, True, "auto", "bytes")] if len(malformed.wire) < LONG_WIRE else cells


@pytest.mark.parametrize("dialect", DIALECTS)
def test_there_are_a_hundred_kinds_of_each_server(dialect: str) -> None:
    own = [malformed for malformed in KINDS if malformed.dialect == dialect]
    assert len({malformed.name.removesuffix(", whole") for malformed in own}) >= 200
    assert len({(malformed.wire, malformed.kind, malformed.is_cut) for malformed in own}) >= 200
    assert [name for name, count in Counter(malformed.name for malformed in own).items() if count > 1] == []
    assert 50 <= sum(malformed.expected.error is not None for malformed in own) <= len(own) // 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_H001_H008_H010_H015_H029_H050_H114_H154_each_kind_in_one_client_dialect(
    player: StreamPlayer, dialect: str
) -> None:
    own = [(number, malformed) for number, malformed in enumerate(KINDS) if malformed.dialect == dialect]
    found = {malformed.name: player.play(number, [_quick(number, malformed)]) for number, malformed in own}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(KINDS)), ids=TITLES)
def test_H002_H006_H007_H011_H012_H013_H017_H028_H030_H031_H049_H051_H071_H109_each_kind_in_many_client_dialects(
    player: StreamPlayer, number: int
) -> None:
    assert player.play(number, _many(number, KINDS[number])) == []


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    running = Upstream()
    yield running
    running.close()


@pytest.fixture(scope="module")
def connection(upstream: Upstream) -> Iterator[HTTPConnection]:
    config = Config(server=server_config())
    common = {"kind": "gemini", "base_url": upstream.url, "models": ("m",), "retries": 0}
    google = [BackendConfig(name="gemini", **common), BackendConfig(name="gemini-anew", verbatim="never", **common)]  # type: ignore[arg-type] # members of the configuration
    with gateway(with_backends(config, (*backends_of(upstream), *google))) as running:
        opened = HTTPConnection("127.0.0.1", running.port, timeout=30)
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_H148_H150_the_network_gives_the_same_answers(
    connection: HTTPConnection, upstream: Upstream, dialect: str
) -> None:
    found = []
    for number, malformed in enumerate(KINDS):
        if malformed.dialect == dialect:
            cell = _quick(number, malformed)
            reply = _ask_over_network(connection, upstream, malformed, cell)
            request = _request(malformed, cell, "m")
            found += [f"{malformed.title}: {cell}: {fault}" for fault in faults(malformed, cell.client, request, reply)]
    assert found == []
    assert threading.active_count() < 50


def _ask_over_network(connection: HTTPConnection, upstream: Upstream, malformed: Malformed, cell: Cell) -> Reply:
    parts = pieces(malformed.wire, "frames")
    verb = "streamGenerateContent?alt=sse" if cell.is_stream else "generateContent"
    name = f"/v1beta/models/m:{verb}" if malformed.dialect == "gemini" else "m"
    upstream.on(name, [stream_head(malformed.kind), *map(chunk, parts), CLOSE if malformed.is_cut else LAST_CHUNK])
    model = f"{malformed.dialect}{'' if cell.way == 'auto' else '-anew'}/m"
    return ask(connection, cell.client, "key", _request(malformed, cell, model))
