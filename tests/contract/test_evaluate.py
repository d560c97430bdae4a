"""bench/evaluate judges calls by BFCL's rules, counts what they cost, and works on any server with Chat Completions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.evaluate.questions import SAMPLE, Question, bundled
from bench.evaluate.recorder import Cost, Recorder
from bench.evaluate.report import Row, to_json, to_table
from bench.evaluate.settings import Setting, all_settings
from bench.evaluate.truth import Verdict, judge

from tests.server.answers import body
from tests.server.harness import Upstream, reply

ROOT = Path(__file__).resolve().parents[2]
TOOL = {
    "type": "function",
    "function": {
        "name": "book",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "with": {"type": "object"}},
            "required": ["city"],
        },
    },
}
ONE = Question(
    "one", [], [TOOL], [{"book": {"city": ["New York", "NYC"], "days": [2, ""], "with": ["", {"a": [1, 2]}]}}]
)
TWO = Question("two", [], [TOOL], [{"book": {"city": ["Rome"]}}, {"book": {"city": ["Oslo"]}}])
NONE = Question("none", [], [TOOL], [])


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    playing = Upstream()
    yield playing
    playing.close()


def made(*arguments: str) -> list[tuple[str, str]]:
    return [("book", raw) for raw in arguments]


@pytest.mark.parametrize(
    ("question", "calls", "verdict"),
    [
        (ONE, [], Verdict()),
        (ONE, made("{"), Verdict(has_call=True)),
        (ONE, made("[]"), Verdict(has_call=True)),
        (ONE, made("{}"), Verdict(has_call=True, parses=True)),
        (ONE, [("other", '{"city": "NYC"}')], Verdict(has_call=True, parses=True)),
        (ONE, made('{"city": "Rome"}'), Verdict(has_call=True, parses=True, validates=True)),
        (ONE, made('{"city": "NYC", "days": 3}'), Verdict(has_call=True, parses=True, validates=True)),
        (ONE, made('{"city": "NYC", "more": 3}'), Verdict(has_call=True, parses=True, validates=True)),
        (ONE, made('{"city": "new-york"}'), Verdict(has_call=True, parses=True, validates=True, is_equal=True)),
        (
            ONE,
            made('{"city": "NYC", "days": 2.0, "with": {"a": 2}}'),
            Verdict(has_call=True, parses=True, validates=True, is_equal=True),
        ),
        (ONE, made('{"city": "NYC"}', '{"city": "NYC"}'), Verdict(has_call=True, parses=True, validates=True)),
        (
            TWO,
            made('{"city": "Oslo"}', '{"city": "Rome"}'),
            Verdict(has_call=True, parses=True, validates=True, is_equal=True),
        ),
        (TWO, made('{"city": "Oslo"}'), Verdict(has_call=True, parses=True, validates=True)),
        (NONE, [], Verdict(is_equal=True)),
        (NONE, made('{"city": "Oslo"}'), Verdict(has_call=True, parses=True, validates=True)),
    ],
)
def test_calls_are_judged_step_by_step(question: Question, calls: list[tuple[str, str]], verdict: Verdict) -> None:
    assert judge(question, calls) == verdict


def test_the_sample_is_fixed_and_its_truth_is_valid() -> None:
    questions = bundled()
    assert len(questions) == sum(SAMPLE.values())
    assert len(bundled(5)) == 5
    for question in questions:
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in question.tools}
        calls = []
        for call in question.truth:
            ((name, options),) = call.items()
            assert name in schemas
            calls.append((name, json.dumps(chosen(options))))
        assert judge(question, calls).is_equal, question.id


def chosen(options: dict[str, list[Any]]) -> dict[str, Any]:
    """The first right value of each member."""
    values = {name: next((one for one in choices if one != ""), "") for name, choices in options.items()}
    return {name: chosen(value) if isinstance(value, dict) else value for name, value in values.items() if value != ""}


def test_a_repeated_request_is_counted_and_not_sent_again(upstream: Upstream, tmp_path: Path) -> None:
    answer = body("chat", "Hi.") | {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    upstream.on("m", [reply(200, json.dumps(answer).encode())])
    for settings in ("ab", "b"):  # the second run reads what the first one stored
        recorder = Recorder([f"{upstream.url}/v1"], "sk-test", {"cache_prompt": False}, tmp_path / "store.jsonl")
        try:
            answers = [recorder.answer(setting, {"model": "m", "messages": []}) for setting in settings]
        finally:
            recorder.close()
        assert {status for status, _ in answers} == {200}
        assert recorder.costs == {setting: Cost(1, 7, 2) for setting in settings}
    (sent,) = upstream.requests("m")
    assert sent.json == {"model": "m", "messages": [], "cache_prompt": False}
    assert sent.headers["authorization"] == "Bearer sk-test"


def test_the_table_states_what_a_point_costs() -> None:
    right, wrong = Verdict(True, True, True, True), Verdict()
    rows = [
        Row(Setting("simulate", "off", "off"), [wrong, wrong], [right], Cost(3, 300, 30), 0),
        Row(Setting("simulate", "on", "retry"), [right, wrong], [wrong], Cost(6, 600, 30), 0),
    ]
    first, second = to_table(rows).splitlines()[2:]
    assert first == "| auto | simulate | off | off | 0 % | 0 % | 0 % | 0 % | 100 % | 1.00 | 110 | - | - |"
    assert second == "| auto | simulate | on | retry | 50 % | 50 % | 50 % | 50 % | 0 % | 2.00 | 210 | +0.020 | +2.000 |"
    assert [row["points_gained"] for row in to_json(rows)] == [0.0, 50.0]


def test_every_setting_has_its_baseline() -> None:
    for kinds in (["native"], ["simulate"], ["native", "simulate"]):
        settings = all_settings(kinds, ["auto", "required"])
        assert all(setting.baseline in settings for setting in settings)
        assert len({setting.name for setting in settings}) == len(settings)


@pytest.mark.slow
def test_any_server_with_chat_completions_can_be_measured(upstream: Upstream, tmp_path: Path) -> None:
    answer: dict[str, Any] = body("chat", '{"calls": []}') | {"usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    upstream.on("m", [reply(200, json.dumps(answer).encode())])
    result = tmp_path / "result.json"
    options = [
        "--url",
        f"{upstream.url}/v1",
        "--model",
        "m",
        "--count",
        "3",
        "--choices",
        "auto",
        "--json",
        str(result),
    ]
    command = [sys.executable, "-m", "bench.evaluate", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.count("\n| auto |") == 13
    rows = json.loads(result.read_text())["rows"]
    assert [row["questions"] + row["questions_without_call"] for row in rows] == [3] * 13
    assert all(row["failed"] == 0 and row["requests"] >= 3 for row in rows)
