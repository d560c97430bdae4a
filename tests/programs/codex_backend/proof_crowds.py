"""Concurrency: no client gets another's answer, and two parallel loops of calls do not mix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.programs.codex_backend.clients import CLIENTS, Client
from tests.programs.codex_backend.scenes import CROWD
from tests.programs.codex_backend.stage import Stage, fresh_tag
from tests.programs.codex_backend.toolbox import SEARCHES, result


def test_fifty_turns_at_once(codex_stage: Stage, backend: str) -> None:
    """The provider answers only when it has all requests."""
    tags = [fresh_tag() for _ in range(CROWD)]
    with ThreadPoolExecutor(CROWD) as pool:
        answers = list(pool.map(lambda numbered: _turn(codex_stage, backend, *numbered), enumerate(tags)))
    assert answers == [f"Hello {tag} world." for tag in tags]
    assert all(len(codex_stage.seen(tag)) == 1 for tag in tags)


def test_fifty_loops_at_once(codex_stage: Stage, backend: str) -> None:
    tags = [fresh_tag() for _ in range(CROWD)]
    with ThreadPoolExecutor(CROWD) as pool:
        ends = list(pool.map(lambda numbered: _loop(codex_stage, backend, *numbered), enumerate(tags)))
    assert ends == [f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1" for tag in tags]


@pytest.mark.parametrize("other", sorted(CLIENTS))
def test_two_clients_with_loops_that_interleave(codex_stage: Stage, backend: str, dialect: str, other: str) -> None:
    tags = (fresh_tag(), fresh_tag())
    pair = [
        _opened(codex_stage, backend, name, is_streamed, tag)
        for name, is_streamed, tag in zip((dialect, other), (True, False), tags, strict=True)
    ]
    for number in range(2):
        answers = [client.ask() for client in pair]
        for client, answer, tag in reversed(list(zip(pair, answers, tags, strict=True))):
            assert [call.name for call in answer.calls] == [("localSearch", "webSearch")[number]]
            assert tag in answer.calls[0].raw
            client.give({call.id: result(call.name, number, tag) for call in answer.calls})
    assert [client.ask().text for client in reversed(pair)] == [
        f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1" for tag in reversed(tags)
    ]


def _opened(stage: Stage, backend: str, dialect: str, is_streamed: bool, tag: str) -> Client:
    client = CLIENTS[dialect](stage, backend, is_streamed=is_streamed, tools=SEARCHES)
    client.say(f"SC=loop TAG={tag}")
    return client


def _turn(stage: Stage, backend: str, number: int, tag: str) -> str:
    kind = list(CLIENTS.values())[number % len(CLIENTS)]
    client = kind(stage, backend, is_streamed=number % 2 == 0)
    client.say(f"SC=crowd TAG={tag}")
    return client.ask().text


def _loop(stage: Stage, backend: str, number: int, tag: str) -> str:
    client = _opened(stage, backend, list(CLIENTS)[number % len(CLIENTS)], number % 2 == 0, tag)
    for turn in range(2):
        client.give({call.id: result(call.name, turn, tag) for call in client.ask().calls})
    return client.ask().text
