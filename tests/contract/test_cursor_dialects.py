"""Cursor's service behind a gateway, in each dialect: tools, results, errors, budgets, and calls that are corrected within their run."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.harness import NAMES, HistoryEntry, answered, talk
from tests.server.answers import PATHS
from tests.server.harness import (
    Answer,
    Gateway,
    ask,
    connected,
    gateway,
    read_until,
    request_bytes,
    server_config,
    wait_until,
)
from toolwire.backends.cursor.simulator.script import AskPerson, Fail, MakeCall, Say, Seen, Think, With
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import TOKEN, Settings, SimulatorFaults
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.types import Text, ToolCall

pytestmark = pytest.mark.slow

TRANSPORTS = ("run", "sse")
PAIRS = [(dialect, transport) for dialect in NAMES for transport in TRANSPORTS]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


class Actor:
    """A model that does what the user's first word says."""

    def start(self, seen: Seen) -> Any:
        word = _first_word(seen)
        return getattr(self, f"_{word}", self._call)(seen)

    def _call(self, seen: Seen) -> Any:
        results = seen.results
        if not results:
            yield Think("Where?")
            yield Say("Looking. ")
            results = [result.text for result in (yield MakeCall("weather", {"city": "Rome"}))]
        yield Say(f"It says: {results[-1]}")

    def _picture(self, seen: Seen) -> Any:
        [result] = yield MakeCall("weather", {"city": "Rome"})
        yield Say(f"{result.text}, {len(result.images)} picture")

    def _wrong(self, seen: Seen) -> Any:
        """Arguments that do not fit, until it is told."""
        results = seen.results
        if not results:
            yield MakeCall("weather", {"city": 7, "planet": "Mars"})
            results = [result.text for result in (yield MakeCall("weather", {"city": "Rome"}))]
        yield Say(f"Now: {results[-1]}")

    def _shy(self, seen: Seen) -> Any:
        """It calls nothing before it is told once more."""
        if "answered without calling" in seen.user_text:
            yield MakeCall("weather", {"city": "Rome"})
        yield Say("I would rather not.")

    def _circles(self, seen: Seen) -> Any:
        while True:
            yield MakeCall("weather", {"city": "Rome"})

    def _fail(self, seen: Seen) -> Any:
        yield Fail(error=seen.user_text.split()[1])

    def _cut(self, seen: Seen) -> Any:
        yield With(SimulatorFaults(at={"text": "drop"}))
        yield Say("Some words of mine", pieces=2)

    def _written(self, seen: Seen) -> Any:
        yield Say(f"tools: {len(seen.tools)}")

    def _long(self, seen: Seen) -> Any:
        yield Say("word " * 300, pieces=300, pause=0.05)

    def _asking(self, seen: Seen) -> Any:
        yield AskPerson("web_search")
        yield Say("Nobody answered.")


def _first_word(seen: Seen) -> str:
    texts = [seen.user_text, *(str(message.get("content")) for message in seen.messages)]
    words = ("picture", "wrong", "shy", "circles", "fail", "cut", "written", "asking", "long")
    return next((word for word in words if any(word in text for text in texts)), "call")


class Stage:
    """The simulator in a thread of its own, and a gateway in another."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.simulator = Simulator(model=Actor(), settings=Settings(heartbeat=0.5))
        self._run(self.simulator.start())

    def close(self) -> None:
        self._run(self.simulator.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def _run(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def backend(self, name: str, **more: Any) -> BackendConfig:
        fields: dict[str, Any] = {"token": Secret(TOKEN), "client_version": "cli-2026.01.09", "retries": 0} | more
        return BackendConfig(name=name, kind="cursor", base_url=self.simulator.url, **fields)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(stage: Stage) -> Iterator[Gateway]:
    backends = [stage.backend(transport, transport=transport) for transport in TRANSPORTS]
    backends += [stage.backend(f"{level}", guard=level) for level in ("off", "check", "repair", "retry")]
    backends.append(stage.backend("few", max_requests_per_minute=2))
    backends.append(stage.backend("told", tools="simulate", guard="retry", policy="text"))
    with gateway(with_backends(Config(server=server_config()), tuple(backends))) as running:
        yield running


def answer_to(server: Gateway, dialect: str, backend: str, *steps: HistoryEntry, stream: bool = True) -> Answer:
    body = {"model": f"{backend}/default", **talk(dialect, *steps, tools={"weather": SCHEMA}, stream=stream)}
    return ask(server.port, "POST", PATHS[dialect], body)


def after(steps: tuple[HistoryEntry, ...], calls: list[ToolCall], text: str) -> tuple[HistoryEntry, ...]:
    made = [HistoryEntry("call", call.raw, call.id, call.name) for call in calls]
    return (*steps, *made, *(HistoryEntry("result", text, call.id) for call in calls))


def calls_in(parts: list[Any]) -> list[ToolCall]:
    return [part for part in parts if isinstance(part, ToolCall)]


def text_in(parts: list[Any]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text))


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("dialect", "transport"), PAIRS)
def test_a_call_and_its_result_are_one_run(
    stage: Stage, server: Gateway, dialect: str, transport: str, stream: bool
) -> None:
    before = len(stage.simulator.journal.runs)
    steps = (HistoryEntry("user", f"call {dialect} {transport} {stream}"),)
    first = answered(dialect, answer_to(server, dialect, transport, *steps, stream=stream), stream=stream)
    [call] = calls_in(first)
    assert (call.name, json.loads(call.raw), text_in(first)) == ("weather", {"city": "Rome"}, "Looking. ")
    steps = after(steps, [call], "clear sky")
    second = answered(dialect, answer_to(server, dialect, transport, *steps, stream=stream), stream=stream)
    assert text_in(second) == "It says: clear sky"
    [run] = stage.simulator.journal.runs[before:]
    assert (run.transport, set(run.results.values()), run.offences) == (transport, {1}, [])


@pytest.mark.parametrize(("dialect", "transport"), PAIRS)
def test_a_history_without_its_run_starts_a_new_run(
    stage: Stage, server: Gateway, dialect: str, transport: str
) -> None:
    before = len(stage.simulator.journal.runs)
    made = ToolCall(id="call_of_another_day", name="weather", raw='{"city": "Rome"}')
    steps = after((HistoryEntry("user", f"call history {dialect} {transport}"),), [made], "fog")
    assert text_in(answered(dialect, answer_to(server, dialect, transport, *steps))) == "It says: fog"
    [run] = stage.simulator.journal.runs[before:]
    assert [message["role"] for message in run.messages][-2:] == ["assistant", "tool"]
    assert run.offences == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_failed_result_with_an_image_continues_its_run(stage: Stage, server: Gateway, transport: str) -> None:
    before = len(stage.simulator.journal.runs)
    steps = (HistoryEntry("user", f"picture {transport}"),)
    [call] = calls_in(answered("messages", answer_to(server, "messages", transport, *steps)))
    body = {"model": f"{transport}/default", **talk("messages", *after(steps, [call], "x"), tools={"weather": SCHEMA})}
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    words = {"type": "text", "text": "no such city"}
    [block] = [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]
    block |= {"is_error": True, "content": [words, {"type": "image", "source": source}]}
    answer = ask(server.port, "POST", PATHS["messages"], body)
    assert text_in(answered("messages", answer)) == "no such city, 1 picture"
    assert "x-toolwire-loss" not in answer.headers
    [run] = stage.simulator.journal.runs[before:]
    assert run.offences == []


ERRORS = {"rate_limited": 429, "unauthorized": 401, "bad_model": 404, "too_long": 400, "update_required": 426}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize(("dialect", "transport"), PAIRS)
def test_a_refusal_has_its_status_and_an_error_of_the_dialect(
    server: Gateway, dialect: str, transport: str, error: str
) -> None:
    answer = answer_to(server, dialect, transport, HistoryEntry("user", f"fail {error}"))
    assert answer.status == ERRORS[error]
    assert answer.json["error"]["message"]
    assert (answer.json.get("type") == "error") is (dialect == "messages")


@pytest.mark.parametrize(("dialect", "transport"), PAIRS)
def test_a_broken_stream_ends_with_an_error_event(server: Gateway, dialect: str, transport: str) -> None:
    answer = answer_to(server, dialect, transport, HistoryEntry("user", "cut"))
    assert answer.status == 200
    assert b"Some" in answer.body
    assert b"error" in answer.body
    whole = answer_to(server, dialect, transport, HistoryEntry("user", "cut"), stream=False)
    assert whole.status == 502


@pytest.mark.parametrize("dialect", NAMES)
def test_H167_a_budget_that_is_spent_is_a_429_with_the_time_to_wait(server: Gateway, dialect: str) -> None:
    steps: tuple[HistoryEntry, ...] = (HistoryEntry("user", f"circles {dialect}"),)
    for _ in range(3):
        steps = after(steps, calls_in(answered(dialect, answer_to(server, dialect, "few", *steps))), "again")
    answer = answer_to(server, dialect, "few", *steps)
    assert answer.status == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert "max_requests_per_minute" in answer.json["error"]["message"]


def test_many_first_requests_are_not_refused(server: Gateway) -> None:
    answers = [answer_to(server, "chat", "few", HistoryEntry("user", "written")) for _ in range(20)]
    assert {answer.status for answer in answers} == {200}


@pytest.mark.parametrize("dialect", NAMES)
def test_an_invalid_call_is_corrected_within_its_run(stage: Stage, server: Gateway, dialect: str) -> None:
    before = len(stage.simulator.journal.runs)
    steps = (HistoryEntry("user", f"wrong {dialect}"),)
    [call] = calls_in(answered(dialect, answer_to(server, dialect, "retry", *steps)))
    assert json.loads(call.raw) == {"city": "Rome"}
    second = answered(dialect, answer_to(server, dialect, "retry", *after(steps, [call], "mild")))
    assert text_in(second) == "Now: mild"
    [first] = stage.simulator.journal.runs[before:]
    assert (first.calls[0].args["city"], first.calls[0].answers) == (7, 1)
    assert first.calls[1].args == {"city": "Rome"}
    assert "planet" in first.calls[0].text
    assert first.calls[1].text == "mild"


def test_a_missing_forced_call_gets_a_correction_round(server: Gateway) -> None:
    body = {"model": "retry/default", **talk("chat", HistoryEntry("user", "shy"), tools={"weather": SCHEMA})}
    parts = answered("chat", ask(server.port, "POST", PATHS["chat"], body | {"tool_choice": "required"}))
    assert [json.loads(call.raw) for call in calls_in(parts)] == [{"city": "Rome"}]


@pytest.mark.parametrize("level", ["off", "check", "repair"])
def test_without_retry_the_client_gets_the_invalid_call(stage: Stage, server: Gateway, level: str) -> None:
    before = len(stage.simulator.journal.runs)
    steps = (HistoryEntry("user", f"wrong {level}"),)
    [call] = calls_in(answered("chat", answer_to(server, "chat", level, *steps)))
    assert "city" in json.loads(call.raw)
    parts = answered("chat", answer_to(server, "chat", level, *after(steps, [call], "no such city")))
    assert [json.loads(made.raw) for made in calls_in(parts)] == [{"city": "Rome"}]
    [run] = stage.simulator.journal.runs[before:]
    assert [made.answers for made in run.calls] == [1, 0]


@pytest.mark.parametrize("dialect", NAMES)
def test_a_simulated_back_end_gets_no_native_tools(stage: Stage, server: Gateway, dialect: str) -> None:
    parts = answered(dialect, answer_to(server, dialect, "told", HistoryEntry("user", "written")))
    assert text_in(parts) == "tools: 0"


def test_a_question_to_a_person_does_not_stop_the_turn(server: Gateway) -> None:
    assert (
        text_in(answered("chat", answer_to(server, "chat", "run", HistoryEntry("user", "asking"))))
        == "Nobody answered."
    )


def test_a_client_that_disconnects_ends_the_run(stage: Stage, server: Gateway) -> None:
    before = len(stage.simulator.journal.runs)
    body = {"model": "sse/default", **talk("chat", HistoryEntry("user", "long"), tools={"weather": SCHEMA})}
    with connected(server.port) as connection:
        connection.sendall(request_bytes(PATHS["chat"], body))
        read_until(connection, b"word")
    [run] = stage.simulator.journal.runs[before:]
    wait_until(lambda: run.state != "open", 5.0)
    assert run.state == "gone" or run.error.startswith("canceled")
