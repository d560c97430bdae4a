"""Runs of Cursor's service that never end, or end without an end event, behind a running gateway: no text is lost, and nothing hangs.

What is played was seen on the real service: after the results of calls on a run that had been parked, the text comes only as a blob, then
nothing but heartbeats, about one a second.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.contract.cursor_harness import SCHEMA, VERSION, CursorStage, after, running
from tests.contract.harness import NAMES, HistoryEntry, answered, talk
from tests.free_port import free_port
from tests.programs.stage import serving
from tests.server.answers import PATHS
from tests.server.harness import ask, process, wait_until
from toolwire.backends.cursor.simulator.script import Checkpoint, EndTurn, MakeCall, Say, Seen, Think, With, play
from toolwire.backends.cursor.simulator.settings import API_KEY, Settings, SimulatorFaults
from toolwire.types import Reasoning

pytestmark = pytest.mark.slow

TRANSPORTS = ("run", "sse")
QUICK = Settings(heartbeat=0.05)
TEXT = "Sunny, 21 °C \U0001f31e. " * 200 + "\n\tThe end\u2028"
MODEL = play([Say("Let me look. "), MakeCall("look", {"city": "Rome"})], [Say(TEXT)])
BOTH = pytest.mark.parametrize("transport", TRANSPORTS)
EITHER = pytest.mark.parametrize("stream", [True, False])


def conversation(stage: CursorStage, *, dialect: str = "chat", stream: bool = True) -> tuple[list[Any], dict[str, str]]:
    """A call, its result, and the answer to that with its headers."""
    steps = (HistoryEntry("user", f"the weather, please ({dialect}, {stream})"),)
    first = answered(dialect, stage.ask(*steps, dialect=dialect, stream=stream), stream=stream)
    [call] = stage.calls(first)
    answer = stage.ask(*after(steps, [call], "clear"), dialect=dialect, stream=stream)
    return answered(dialect, answer, stream=stream), answer.headers


@BOTH
def test_with_defaults_a_run_that_never_ends_takes_under_fifteen_seconds(transport: str) -> None:
    """All cases at once, as each waits for ten heartbeats of a second."""
    cases = itertools.product(("text", "nothing"), (True, False))
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(answer_endless_run, transport, endless, stream) for endless, stream in cases]
        for case in waiting:
            case.result()


def answer_endless_run(transport: str, endless: Any, stream: bool) -> None:
    with running(MODEL, faults=[SimulatorFaults(endless=endless)], transport=transport) as stage:
        steps = (HistoryEntry("user", "the weather, please"),)
        [call] = stage.calls(answered("chat", stage.ask(*steps, stream=stream), stream=stream))
        began = time.monotonic()
        answer = stage.ask(*after(steps, [call], "clear"), stream=stream)
        assert time.monotonic() - began < 15
        assert stage.text(answered("chat", answer, stream=stream)) == TEXT
        wait_until(lambda: all(run.state != "open" for run in stage.runs))


@EITHER
@BOTH
@pytest.mark.parametrize("dialect", NAMES)
def test_the_text_of_a_blob_is_the_answer(dialect: str, transport: str, stream: bool) -> None:
    with running(MODEL, faults=SimulatorFaults(endless="text"), settings=QUICK, transport=transport) as stage:
        parts, headers = conversation(stage, dialect=dialect, stream=stream)
        assert stage.text(parts) == TEXT
        assert len(stage.runs) == 1
        assert stream or "cursor.turn_end" in headers["x-toolwire-loss"]
        wait_until(lambda: stage.runs[0].state != "open")  # it was left
        assert stage.metric("toolwire_losses_total", feature="cursor.turn_end") == 1


@EITHER
@BOTH
@pytest.mark.parametrize("dialect", NAMES)
def test_without_text_the_conversation_is_sent_again_once_and_runs_are_not_parked(
    dialect: str, transport: str, stream: bool
) -> None:
    with running(MODEL, faults=SimulatorFaults(endless="nothing"), settings=QUICK, transport=transport) as stage:
        parts, headers = conversation(stage, dialect=dialect, stream=stream)
        assert stage.text(parts) == TEXT
        assert "cursor.stalled" in headers["x-toolwire-loss"]
        assert [run.user_text for run in stage.runs][1] == "Go on with the results of the tools above."
        roles = [message["role"] for message in stage.runs[1].messages]
        assert roles == ["user", "assistant", "tool"]
        wait_until(lambda: all(run.state != "open" for run in stage.runs))
        before = len(stage.runs)
        parts, _ = conversation(stage, dialect=dialect, stream=not stream)
        assert stage.text(parts) == TEXT
        assert len(stage.runs) == before + 2  # a run for each step
        assert [run.offences for run in stage.runs] == [[]] * 4


class Thinking:
    """Thinks after the result, and says no more; the run that is begun again says it."""

    def start(self, seen: Seen) -> Any:
        if not seen.results:
            yield MakeCall("look", {"city": "Rome"})
            yield Think("Let me see.")
            yield With(SimulatorFaults(endless="nothing"))
            return
        yield Think("Again.")
        yield Say(TEXT)


@EITHER
@BOTH
def test_reasoning_before_a_stall_is_kept(transport: str, stream: bool) -> None:
    with running(Thinking(), settings=QUICK, transport=transport) as stage:
        parts, _ = conversation(stage, dialect="messages", stream=stream)
        assert [part.text for part in parts if isinstance(part, Reasoning)] == ["Let me see.", "Again."]
        assert stage.text(parts) == TEXT
        assert len(stage.runs) == 2


@pytest.mark.parametrize("endless", ["text", "nothing"])
def test_without_a_heartbeat_limit_the_idle_timeout_ends_the_run(endless: Any) -> None:
    limits: dict[str, Any] = {"stall_heartbeats": 0, "first_byte_timeout": 1.5}
    with running(MODEL, faults=SimulatorFaults(endless=endless), settings=QUICK, **limits) as stage:
        steps = (HistoryEntry("user", "hi"),)
        [call] = stage.calls(answered("chat", stage.ask(*steps)))
        answer = stage.ask(*after(steps, [call], "clear"), stream=False)
        if endless == "text":
            assert stage.text(answered("chat", answer, stream=False)) == TEXT
        else:
            assert (answer.status, answer.json["error"]["code"]) == (504, "upstream_timeout")
        assert len(stage.runs) == 1


def test_a_slow_model_of_a_new_run_is_not_a_stall() -> None:
    class Slow:
        def start(self, seen: Seen) -> Any:
            yield With(SimulatorFaults(slow=1.5))
            yield Say("At last.", pieces=1)

    with running(Slow(), settings=QUICK) as stage:
        assert stage.text(stage.chat("hi")) == "At last."
        assert len(stage.runs) == 1


@EITHER
@BOTH
def test_text_and_a_clean_stream_end_are_an_answer(transport: str, stream: bool) -> None:
    model = play([Say(TEXT), Checkpoint()])
    with running(model, faults=SimulatorFaults(no_turn_ended=True), settings=QUICK, transport=transport) as stage:
        answer = stage.ask(HistoryEntry("user", "hi"), stream=stream)
        assert stage.text(answered("chat", answer, stream=stream)) == TEXT
        assert stage.metric("toolwire_losses_total", feature="cursor.turn_end") == 1
        assert len(stage.runs) == 1


class Empty:
    """Says nothing, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def start(self, seen: Seen) -> Any:
        if seen.number >= self.times:
            yield Say(TEXT)
        yield EndTurn()


@EITHER
@BOTH
@pytest.mark.parametrize("times", [1, 2])
def test_a_run_without_output_is_retried_once_and_then_reported(transport: str, stream: bool, times: int) -> None:
    with running(Empty(times), settings=QUICK, transport=transport) as stage:
        answer = stage.ask(HistoryEntry("user", "hi"), stream=stream)
        assert len(stage.runs) == 2
        if times == 1:
            assert stage.text(answered("chat", answer, stream=stream)) == TEXT
            assert "cursor.empty" in answer.headers["x-toolwire-loss"]
        else:
            assert (answer.status, answer.json["error"]["code"]) == (502, "empty_answer")


@BOTH
def test_a_continued_run_without_output_is_restarted_once(transport: str) -> None:
    class Silent:
        def start(self, seen: Seen) -> Any:
            if not seen.results:
                yield MakeCall("look", {"city": "Rome"})
            yield EndTurn()

    with running(Silent(), settings=QUICK, transport=transport) as stage:
        steps = (HistoryEntry("user", "hi"),)
        [call] = stage.calls(answered("chat", stage.ask(*steps)))
        answer = stage.ask(*after(steps, [call], "clear"))
        assert (answer.status, answer.json["error"]["code"]) == (502, "empty_answer")
        assert len(stage.runs) == 2


def test_text_in_a_blob_works_with_the_demo_model() -> None:
    with running(faults=SimulatorFaults(text_as_blob=True), settings=QUICK) as stage:
        assert stage.text(stage.chat("hello there"))


@EITHER
@BOTH
@pytest.mark.parametrize("text", ["", "It may rain."])
def test_a_model_that_keeps_calling_without_tools_ends_with_the_best_text(
    transport: str, stream: bool, text: str
) -> None:
    class Stubborn:
        def start(self, seen: Seen) -> Any:
            if text:
                yield Say(text)
            while True:
                yield MakeCall("look", {"city": "Rome"})

    with running(Stubborn(), settings=QUICK, transport=transport) as stage:
        answer = stage.ask(HistoryEntry("user", "hi"), stream=stream, has_tools=False)
        parts = answered("chat", answer, stream=stream)
        assert stage.text(parts) == (text or '[call of look: {"city":"Rome"}]')
        assert stage.calls(parts) == []
        assert b'"finish_reason":"length"' in answer.body.replace(b'": "', b'":"')
        assert len(stage.runs) == 1


SCRIPT = """
[[turns]]
steps = [{ do = "say", text = "Let me look. " }, { do = "call", name = "look", args = { city = "Rome" } }]
[[turns]]
steps = [{ do = "say", text = "It says {{result:0}}, every character of it." }]
"""


@pytest.mark.parametrize("fault", ["endless=text", "endless=nothing"])
def test_serve_and_simulate_as_commands(tmp_path: Path, fault: str) -> None:
    """`toolwire simulate cursor` with the fault, `toolwire serve` with nothing but the account, and a client that streams."""
    (tmp_path / "script.toml").write_text(SCRIPT)
    port = free_port()
    options = ["--port", str(port), "--strict", "--script", str(tmp_path / "script.toml"), "--fault", fault]
    toml = f"""
[backends.cursor]
kind = "cursor"
base_url = "http://127.0.0.1:{port}"
key = "{API_KEY}"
client_version = "{VERSION}"
"""
    with (
        serving([sys.executable, "-m", "toolwire", "simulate", "cursor", *options], port, tmp_path / "simulator.log"),
        process(tmp_path, toml) as server,
    ):
        steps: tuple[HistoryEntry, ...] = (HistoryEntry("user", "hi"),)

        def parts_of_answer() -> list[Any]:
            body = {"model": "cursor/default", **talk("responses", *steps, tools={"look": SCHEMA})}
            return answered("responses", ask(server.port, "POST", PATHS["responses"], body))

        [call] = CursorStage.calls(parts_of_answer())
        steps = after(steps, [call], "clear")
        began = time.monotonic()
        assert CursorStage.text(parts_of_answer()) == "It says clear, every character of it."
        assert time.monotonic() - began < 15
