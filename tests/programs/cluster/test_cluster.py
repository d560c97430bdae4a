"""Several gateways as one: whichever of six processes a request reaches, the conversation goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from anthropic import Anthropic
from openai import NotFoundError, OpenAI

from tests.postgres_server import PostgresServer
from tests.programs.cluster.stage import OTHER_KEY, Gateways, gateways
from tests.programs.cursor.journal import runs_of
from tests.programs.cursor.stage import RUN_PARKED, CursorStage
from tests.programs.stage import KEY, calling, prompt
from tests.server.harness import ask

pytestmark = pytest.mark.slow

STEPS = 20
TOOL: dict[str, Any] = {
    "name": "keep",
    "description": "Keeps a number.",
    "parameters": {
        "type": "object",
        "properties": {"mark": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["mark", "number"],
    },
}


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    started = PostgresServer()
    started.start()
    yield started
    started.close()


@pytest.fixture(scope="module")
def site(database: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    with gateways(tmp_path_factory.mktemp("cluster"), database) as running:
        yield running


def client(site: Gateways, key: str = KEY) -> OpenAI:
    return OpenAI(base_url=f"{site.address}/v1", api_key=key, max_retries=0, timeout=30)


def records(database: PostgresServer, space: str) -> dict[str, bytes]:
    async def read() -> dict[str, bytes]:
        connection = await asyncpg.connect(database.url)
        rows = await connection.fetch("SELECT name, value FROM toolwire_records WHERE space = $1", space)
        await connection.close()
        return {row["name"]: row["value"] for row in rows}

    return asyncio.run(read())


class Task:
    """A client that runs one call after the other; each answer must contain exactly the next call."""

    def __init__(self, site: Gateways, mark: str, steps: int) -> None:
        self.mark, self.steps = mark, steps
        self._site = site
        turns = [calling("keep", arguments={"mark": mark, "number": number}) for number in range(steps)]
        self.messages: list[Any] = [{"role": "user", "content": prompt(*turns, {"text": f"ALLDONE {mark}"})}]
        self.servers: list[str] = []

    def step(self) -> list[int]:
        """The numbers of the calls of the next answer, which get their results."""
        answer = ask(  # a new connection each time, so that nginx chooses another gateway
            int(self._site.address.rpartition(":")[2]),
            "POST",
            "/v1/chat/completions",
            {"model": "a-model", "messages": self.messages, "tools": [{"type": "function", "function": TOOL}]},
            {"authorization": f"Bearer {KEY}"},
        )
        assert answer.status == 200, answer.body
        self.servers.append(answer.headers["x-gateway"])
        message = answer.json["choices"][0]["message"]
        self.messages.append(message)
        numbers = []
        for call in message.get("tool_calls") or []:
            numbers.append(json.loads(call["function"]["arguments"])["number"])
            result = {"role": "tool", "tool_call_id": call["id"], "content": f"{self.mark} {numbers[-1]} is done"}
            self.messages.append(result)
        return numbers


def runs_about(site: Gateways, mark: str) -> list[Any]:
    return runs_of(CursorStage(RUN_PARKED.words, "", site.folder), mark)


def test_a_task_stays_on_one_run_whichever_gateway_gets_each_step(site: Gateways) -> None:
    task = Task(site, "MARK-of-one-run", STEPS)
    for number in range(STEPS):
        assert task.step() == [number]
    assert task.step() == []
    assert f"ALLDONE {task.mark}" in task.messages[-1]["content"]
    assert len(set(task.servers)) == 3
    assert all(before != after for before, after in zip(task.servers, task.servers[1:], strict=False))
    (run,) = runs_about(site, task.mark)
    assert (len(run.calls), run.state) == (STEPS, "ended")


def test_a_run_of_a_dead_process_is_replaced(site: Gateways, database: PostgresServer) -> None:
    task = Task(site, "MARK-of-a-dead-owner", 4)
    before = records(database, "run")
    assert task.step() == [0]
    (owner,) = {value for name, value in records(database, "run").items() if name not in before}
    address = json.loads(records(database, "process")[owner.decode()])["address"]
    os.kill(_listening_on(int(address.rpartition(":")[2])), signal.SIGKILL)
    for number in range(1, 4):
        assert task.step() == [number]
    assert task.step() == []
    assert [len(run.calls) for run in runs_about(site, task.mark)] == [1, 3]


def test_state_of_responses_is_everywhere(site: Gateways) -> None:
    previous = None
    script = prompt(*({"text": f"answer {number}"} for number in range(5)), {"echo": True})
    for number in range(6):
        with client(site) as one:
            text = "go on" if number else script
            answer = one.responses.create(model="scripted/x", input=text, previous_response_id=previous)
        previous = answer.id
    for number in range(5):
        assert f"answer {number}" in answer.output_text
    with client(site) as one:
        assert one.responses.retrieve(answer.id).output_text == answer.output_text
        assert len(one.responses.input_items.list(answer.id).data) == 1
    with client(site, OTHER_KEY) as other, pytest.raises(NotFoundError):
        other.responses.retrieve(answer.id)
    with client(site) as one:
        one.responses.delete(answer.id)
    for _ in range(6):
        with client(site) as one, pytest.raises(NotFoundError):
            one.responses.retrieve(answer.id)


def test_conversations_and_threads_are_everywhere(site: Gateways) -> None:
    with client(site) as one:
        conversation = one.conversations.create()
    script = prompt(*({"text": f"part {number}"} for number in range(4)))
    for number in range(4):
        with client(site) as one:
            text = "go on" if number else script
            one.responses.create(model="scripted/x", input=text, conversation=conversation.id)
    with client(site) as one:
        items = one.conversations.items.list(conversation.id, order="asc").data
    assert [item.content[0].text for item in items if item.role == "assistant"] == [
        f"part {number}" for number in range(4)
    ]

    previous = None
    script = prompt(*({"text": f"turn {number}"} for number in range(3)), {"echo": True})
    for number in range(4):
        thread = {"type": "continue", "previous_message_id": previous} if previous else {"type": "create"}
        text = "go on" if number else script
        with Anthropic(base_url=site.address, api_key=KEY, max_retries=0, timeout=30) as one:
            answer = one.messages.create(
                model="scripted/x",
                max_tokens=100,
                messages=[{"role": "user", "content": text}],
                extra_body={"thread": thread},
            )
        previous = answer.id
    assert all(f"turn {number}" in answer.content[0].text for number in range(3))


def test_a_background_answer_is_followed_from_any_event_and_cancelled_anywhere(site: Gateways) -> None:
    words = " ".join(f"w{number}" for number in range(40))
    body = {"text": words, "chunk": 4, "pace": 0.03}
    with client(site) as one:
        queued = one.responses.create(model="scripted/x", input=prompt(body), background=True)
    seen: list[Any] = []
    with client(site) as one, one.responses.retrieve(queued.id, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if len(seen) == 12:
                break
    numbers = [event.sequence_number for event in seen]
    for _ in range(6):
        with (
            client(site) as one,
            one.responses.retrieve(queued.id, stream=True, starting_after=seen[-1].sequence_number) as stream,
        ):
            first = next(iter(stream))
        assert first.sequence_number == numbers[-1] + 1
    with client(site) as one, one.responses.retrieve(queued.id, stream=True, starting_after=numbers[-1]) as stream:
        rest = list(stream)
    assert [event.sequence_number for event in (*seen, *rest)] == list(range(len(seen) + len(rest)))
    text = "".join(event.delta for event in (*seen, *rest) if event.type == "response.output_text.delta")
    assert text == words
    assert rest[-1].type == "response.completed"

    with client(site) as one:
        running = one.responses.create(model="scripted/x", input=prompt({**body, "pace": 0.5}), background=True)
    with client(site) as one:
        assert one.responses.cancel(running.id).status == "cancelled"
    for _ in range(4):
        with client(site) as one:
            assert one.responses.retrieve(running.id).status == "cancelled"


@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")  # of the library that the SDK uses
def test_chains_over_websockets_go_on_at_any_gateway(site: Gateways) -> None:
    """Each connection reaches another process. What is stored is everywhere, and what is not stays with its connection."""
    script = prompt(*({"text": f"answer {number}"} for number in range(5)), {"echo": True})
    previous = None
    for number in range(6):
        with client(site) as one, one.responses.connect() as connection:
            text = "go on" if number else script
            connection.response.create(model="scripted/x", input=text, previous_response_id=previous)
            answer = completed(connection)
        previous = answer.id
    assert all(f"answer {number}" in answer.output_text for number in range(5))
    with client(site) as one:
        assert one.responses.retrieve(answer.id).output_text == answer.output_text

    previous = None
    with client(site) as one, one.responses.connect() as connection:
        for number in range(6):
            text = "go on" if number else script
            connection.response.create(
                model="scripted/x", input=text, previous_response_id=previous, store=False, stream_id="chain"
            )
            answer = completed(connection)
            previous = answer.id
    assert all(f"answer {number}" in answer.output_text for number in range(5))


def completed(connection: Any) -> Any:
    for event in connection:
        assert event.type not in ("error", "response.failed"), event
        if event.type == "response.completed":
            return event.response
    raise AssertionError("the connection ended without an answer")


def test_a_gateway_that_drains_interrupts_no_request(database: PostgresServer, tmp_path: Path) -> None:
    """As in a rolling upgrade: one gateway after the other ends, while clients go on through the load balancer."""
    text = " ".join(f"w{number}" for number in range(20))
    with gateways(tmp_path, database, count=2, workers=1) as running, ThreadPoolExecutor(4) as pool:

        def send(number: int) -> str:
            with client(running) as one:
                script = prompt({"text": text, "chunk": 4, "pace": 0.02})
                events = one.responses.create(model="scripted/x", input=f"{script} {number}", stream=True)
                return "".join(event.delta for event in events if event.type == "response.output_text.delta")

        answers = [pool.submit(send, number) for number in range(40)]
        answers[3].result()
        os.kill(running.processes[0], signal.SIGTERM)
        assert [answer.result() for answer in answers] == [text] * 40
        assert b"ready" in ask(running.ports[1], "GET", "/readyz").body


def _listening_on(port: int) -> int:
    """The process that has the socket."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    line = next(line for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "0A")
    inode = f"socket:[{line[9]}]"
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                links = {os.readlink(file) for file in (process / "fd").iterdir()}
            except OSError:
                continue
            if inode in links:
                return int(process.name)
    raise AssertionError(f"nothing listens on port {port}")
