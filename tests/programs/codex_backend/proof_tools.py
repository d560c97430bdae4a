"""Tool calls through the real Codex: native and in text, with the same effect."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.programs.codex_backend.binaries import NEWEST
from tests.programs.codex_backend.clients import Answer, Client
from tests.programs.codex_backend.conftest import Opening
from tests.programs.codex_backend.stage import Stage
from tests.programs.codex_backend.toolbox import SEARCHES, WEATHER, result

_INSIDE = 'a </tool_call> b "q" \\ é中😀'


def test_a_written_call_whose_tags_are_split(client: Opening, tag: str) -> None:
    opened = client("spoken", SEARCHES)
    opened.say(f"SC=split TAG={tag}")
    answer = opened.ask()
    assert [(call.name, call.arguments) for call in answer.calls] == [("localSearch", {"query": _INSIDE})]
    assert answer.text.split() == ["I", "will", "look", "that", "up.", "Done."]
    assert answer.reason == opened.called
    _end(opened, answer, tag)


def test_parallel_calls_and_their_results(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    answer = opened.ask()
    assert [(call.name, call.arguments) for call in answer.calls] == [
        ("get_weather", {"city": "Paris"}),
        ("get_weather", {"city": "Rome"}),
    ]
    assert len({call.id for call in answer.calls}) == 2
    assert answer.text.strip() == "Let me check."
    assert answer.reason == opened.called
    _end(opened, answer, tag)
    assert _results_at_the_model(codex_stage, tag) == [f"FOUND_{tag}0", f"FOUND_{tag}1"]


def test_how_tools_are_described_to_the_model(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    """Native tools are in the request, simulated ones in the prompt."""
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    _end(opened, opened.ask(), tag)
    first, last = (record["body"] for record in codex_stage.seen(tag))
    is_native = any(tool.get("name", "").endswith("get_weather") for tool in first["tools"])
    outputs = [item for item in last["input"] if item.get("type") == "function_call_output"]
    is_written = backend == "spoken" or codex_stage.version != NEWEST  # before 0.92 Codex takes no tools of clients
    assert (is_native, len(outputs)) == ((False, 0) if is_written else (True, 2))


def test_one_cache_key_for_a_conversation(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    """Calls, results, a text, and another question. An old version cannot revert a thread, so each request has its own."""
    opened = client(backend, SEARCHES)
    opened.say(f"SC=loop TAG={tag}")
    _loop(opened, tag)
    opened.say(f"SC=plain TAG={tag}")
    assert opened.ask().text == f"Hello {tag} world."
    keys = [record["body"]["prompt_cache_key"] for record in codex_stage.seen(tag)]
    count = 1 if codex_stage.version == NEWEST else 4
    assert (len(keys), len(set(keys))) == (4, count)


def test_the_cache_key_of_the_client(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    """Two conversations with one key, except for Messages, which has none. An old version has another key for each request."""
    for number in range(2):
        opened = client(backend, SEARCHES)
        opened.cache_key = f"client {tag}"
        opened.say(f"conversation {number} SC=loop TAG={tag}")
        _loop(opened, tag)
    keys = [record["body"]["prompt_cache_key"] for record in codex_stage.seen(tag)]
    count = (2 if opened.dialect == "messages" else 1) if codex_stage.version == NEWEST else 6
    assert (len(keys), len(set(keys))) == (6, count)


def test_a_long_result_is_not_cut(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    first, second = opened.ask().calls
    lines = [f"line {number} of {tag}" for number in range(8000)]
    opened.give({first.id: "\n".join(lines), second.id: result("get_weather", 1, tag)})
    assert opened.ask().text == f"ALLDONE {tag} FOUND_{tag}1"
    words = json.dumps(codex_stage.seen(tag)[-1]["body"]["input"])
    assert all(line in words for line in lines)


def test_results_in_another_order(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    first, second = opened.ask().calls
    opened.give({second.id: result("get_weather", 1, tag), first.id: result("get_weather", 0, tag)})
    assert set(opened.ask().text.split()[2:]) == {f"FOUND_{tag}0", f"FOUND_{tag}1"}


def test_two_tools_one_after_the_other(codex_stage: Stage, client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, SEARCHES)
    opened.say(f"SC=loop TAG={tag}")
    assert _loop(opened, tag) == [
        ("localSearch", {"query": f"notes {tag}", "limit": 3}),
        ("webSearch", {"query": f'FOUND_{tag}0 é中 "q"', "deep": {"pages": [1, 2]}}),
        f"ALLDONE {tag} FOUND_{tag}0 FOUND_{tag}1",
    ]


def test_the_loop_continues_with_another_prompt(client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, SEARCHES)
    opened.say(f"SC=loop TAG={tag}")
    _loop(opened, tag)
    opened.say(f"SC=plain TAG={tag}z")
    assert opened.ask().text == f"Hello {tag}z world."


def test_the_judge_finds_no_fault_in_calls(client: Opening, backend: str, tag: str) -> None:
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    body = opened.judged().body
    pieces = re.findall(rb'"(?:partial_json|delta|arguments)": ?"((?:[^"\\]|\\.)*)"', body)
    assert b"Rome" in body or b"Rome" in b"".join(pieces)  # arguments may come in pieces


def test_a_client_that_sends_another_prompt_after_calls(client: Opening, backend: str, tag: str) -> None:
    """The results never arrive; the next request of the same conversation still gets an answer."""
    opened = client(backend, WEATHER)
    opened.say(f"SC=pair TAG={tag}")
    answer = opened.ask()
    opened.give({call.id: "not run" for call in answer.calls})
    opened.say(f"SC=plain TAG={tag}n")
    assert opened.ask().text == f"Hello {tag}n world."


def _loop(opened: Client, tag: str) -> list[Any]:
    told: list[Any] = []
    for number in range(4):
        answer = opened.ask()
        if not answer.calls:
            return [*told, answer.text]
        assert all(call.raw not in ("", "{}", '""') for call in answer.calls)
        told += [(call.name, call.arguments) for call in answer.calls]
        opened.give({call.id: result(call.name, number, tag) for call in answer.calls})
    return told


def _end(opened: Client, answer: Answer, tag: str) -> None:
    opened.give({call.id: result(call.name, number, tag) for number, call in enumerate(answer.calls)})
    last = opened.ask()
    found = " ".join(f"FOUND_{tag}{number}" for number in range(len(answer.calls)))
    assert (last.text, last.calls, last.reason) == (f"ALLDONE {tag} {found}", [], opened.ended)


def _results_at_the_model(stage: Stage, tag: str) -> list[str]:
    """In the order of the model's prompt."""
    words = json.dumps(stage.seen(tag)[-1]["body"]["input"])
    found = [f"FOUND_{tag}{number}" for number in range(2)]
    return sorted((word for word in found if word in words), key=words.index)
