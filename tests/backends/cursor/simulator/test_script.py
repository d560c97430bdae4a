from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.backends.cursor.simulator.client import blobs_of, opening, tool
from tests.backends.cursor.simulator.single_run import TRANSPORTS, run_once
from toolwire.backends.cursor.simulator.script import (
    MakeCall,
    MakeCalls,
    Say,
    Seen,
    Step,
    With,
    load,
    parts_of,
    play,
    result_text,
)
from toolwire.backends.cursor.simulator.settings import SimulatorFaults
from toolwire.errors import ConfigError

TOML = """
[[turns]]
steps = [
    { do = "say", text = "Reading it." },
    { do = "call", name = "look", args = { path = "README.md" } },
]
[[turns]]
faults = { empty_usage = true }
steps = [{ do = "say", text = "It says {{result:0:[a-z]+}}." }]
"""
JSON = '{"turns": [{"steps": [{"do": "say", "text": "a"}]}]}'
LINES = '{"steps": [{"do": "call", "name": "look"}]}\n\n{"steps": [{"do": "say", "text": "b"}]}\n'


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_script_in_toml_plays_on_one_run(tmp_path: Path, transport: str) -> None:
    path = tmp_path / "script.toml"
    path.write_text(TOML)
    client, journal = run_once(transport, model=load(path))
    assert (client.text, len(journal.runs)) == ("Reading it.It says fine.", 1)
    assert client.updates("turn_ended")[0].turn_ended.ByteSize() == 0


def test_a_script_as_json_and_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(JSON)
    assert load(path) == play(Say("a"))
    path.write_text(LINES)
    assert load(path) == play(MakeCall("look"), Say("b"))
    path.write_text(LINES.splitlines()[0])
    assert load(path) == play(MakeCall("look"))


@pytest.mark.parametrize("text", ["{", '{"turns": []}', '{"turns": [{"steps": [{"do": "dance"}]}]}', "7"])
def test_a_script_that_is_wrong_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"script"):
        load(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none")


def test_a_new_run_goes_on_after_the_answers_of_its_history() -> None:
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "look", "args": {}}]},
        {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "look", "result": "one"}]},
    ]
    blobs = blobs_of(history)
    model = play([MakeCall("look")], [Say("{{result:0}} "), MakeCall("look")], Say("{{result:1}}"))
    client, _ = run_once(
        model=model,
        first=opening(roots=blobs, action={"resume_action": {}}, tools=[tool()]),
        prepare=lambda c: c.blobs.update(blobs),
    )
    assert client.text == "one fine"


def test_past_the_last_turn_comes_the_last_again() -> None:
    messages = ({"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}) * 5
    assert list(play(Say("a"), Say("b")).start(Seen(messages=messages))) == [Say("b")]


def test_the_faults_of_a_turn_come_first(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text('{"steps": [], "faults": {"gzip": true}}')
    assert list(load(path).start(Seen())) == [With(SimulatorFaults(gzip=True))]


def test_steps_are_distinguished_by_what_they_do() -> None:
    steps = msgspec.convert(
        [{"do": "call", "name": "x"}, {"do": "together", "calls": [{"do": "call", "name": "y", "args": {"a": 1}}]}],
        list[Step],
    )
    assert steps == [MakeCall("x"), MakeCalls((MakeCall("y", {"a": 1}),))]


def test_unknown_values_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"do": "say", "txt": "x"}, Step)


def test_answers_and_results_of_a_prompt() -> None:
    result = {"type": "tool-result", "toolCallId": "c", "toolName": "t"}
    seen = Seen(
        messages=(
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": "c"},
            {"role": "tool", "content": [{**result, "result": "one"}, {**result, "result": [{"text": "two"}]}]},
            {"role": "assistant", "content": "d"},
        )
    )
    assert (seen.answers, seen.results) == (2, ["one", "two"])
    assert (Seen().answers, Seen().results) == (0, [])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("a", "a"),
        (None, ""),
        (7, "7"),
        ({"text": "b"}, "b"),
        ({"content": [{"type": "text", "text": "c"}]}, "c"),
        ({"x": 1}, ""),
        (["a", {"text": "b"}], "ab"),
    ],
)
def test_the_text_of_a_result(result: Any, text: str) -> None:
    assert result_text(result) == text


def test_parts_of_a_message() -> None:
    assert parts_of({"content": "x"}) == [{"type": "text", "text": "x"}]
    assert parts_of({"content": [{"type": "image"}, 7]}) == [{"type": "image"}]
    assert parts_of({}) == []
