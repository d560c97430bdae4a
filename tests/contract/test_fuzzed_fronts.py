"""Generated requests, many of them broken, of clients of Ollama and Interactions: every answer is valid for the official library, errors too."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.clients.gateway import KINDS, Gateway, running_gateway, scripted
from tests.thorough import is_thorough
from toolwire.wire.sse import SseReader

from .front_members import FRONT_BASES, FRONT_MEMBERS
from .hostile_json import ODD, places
from .request_members import Body

pytestmark = pytest.mark.slow  # a gateway and its upstream as processes

COUNT = 1000 if is_thorough() else 120  # for each dialect
PATHS = {"ollama": "/api/chat", "interactions": "/v1beta/interactions"}
TURNS: tuple[Body, ...] = (
    {"text": "fine"},
    {"text": 'é中😀 \\ " \t', "reasoning": "hm"},
    {"text": "Let me look.", "calls": [{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "weather", "arguments": {}}]},
    {"calls": [{"name": "weather", "arguments": {"city": 'é\n"\\', "n": 10**25}}]},
    {"text": "one two", "chunk": 2, "error": {"status": 529, "message": "no", "after": 2}},
    {"error": {"status": 429, "message": "no"}},
    {"refusal": "I will not."},
)  # fmt: skip


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


def damage(body: Body, chance: random.Random) -> None:
    *way, key = chance.choice([path for path in places(body) if path[0] not in ("model", "stream")])
    owner: Any = body
    for step in way:
        owner = owner[step]
    if chance.random() < 0.25:
        del owner[key]
    else:
        owner[key] = copy.deepcopy(chance.choice(ODD))


def generated(dialect: str, gateway: Gateway, chance: random.Random) -> Body:
    body = copy.deepcopy(FRONT_BASES[dialect])
    for member in chance.sample(sorted(FRONT_MEMBERS[dialect]), chance.choice([0, 1, 2, 4])):
        body |= copy.deepcopy(FRONT_MEMBERS[dialect][member])
    prompt = scripted(chance.choice(TURNS))
    said = body["input" if dialect == "interactions" else "messages"]
    if isinstance(said, list):
        step = {"type": "user_input", "content": [{"type": "text", "text": prompt}]}
        said.append(step if dialect == "interactions" else {"role": "user", "content": prompt})
    for _ in range(chance.choice([0, 0, 1, 2])):
        damage(body, chance)
    model = gateway.model(chance.choice(sorted(KINDS)), chance.choice(["auto", "never"]))
    return body | {"model": model, "stream": chance.random() < 0.5}


def send(gateway: Gateway, path: str, body: Body) -> tuple[int, str, bytes]:
    connection = HTTPConnection(gateway.address.removeprefix("http://"), timeout=30)
    headers = {"content-type": "application/json", "authorization": f"Bearer {gateway.key}"}
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.status, response.headers["content-type"], response.read()
    connection.close()
    return answer


def judge_ollama(kind: str, body: bytes) -> None:
    from ollama import ChatResponse

    lines = [json.loads(line) for line in body.splitlines()]
    assert (kind == "application/x-ndjson") or len(lines) == 1
    for line in lines[:-1] if "error" in lines[-1] else lines:
        ChatResponse.model_validate(line, strict=False)
    is_failed = "error" in lines[-1]
    assert is_failed or [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]


def judge_interactions(kind: str, body: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.genai._gaos.types import interactions
        from pydantic import TypeAdapter

        if kind == "application/json":
            TypeAdapter(interactions.Interaction).validate_python(json.loads(body))
            return
        frames = SseReader().feed(body)
        events = [json.loads(frame.data) for frame in frames if frame.data and frame.data != b"[DONE]"]
        adapter: TypeAdapter[Any] = TypeAdapter(interactions.InteractionSSEEvent)
        for event in events:
            assert not getattr(adapter.validate_python(event), "is_unknown", False), event
    assert frames[-1].data == b"[DONE]"
    assert events[0]["event_type"] == "interaction.created"
    assert events[-1]["event_type"] in ("interaction.completed", "error")
    assert [event["event_id"] for event in events] == [str(number + 1) for number in range(len(events))]
    opened = [event["index"] for event in events if event["event_type"] == "step.start"]
    closed = [event["index"] for event in events if event["event_type"] == "step.stop"]
    assert opened == list(range(len(opened)))
    assert closed == opened or events[-1]["event_type"] == "error"


JUDGES: dict[str, Callable[[str, bytes], None]] = {"ollama": judge_ollama, "interactions": judge_interactions}


@pytest.mark.parametrize("dialect", PATHS)
def test_every_answer_is_valid(gateway: Gateway, dialect: str) -> None:
    chance = random.Random(f"requests of {dialect}")
    statuses: list[int] = []
    for _ in range(COUNT):
        request = generated(dialect, gateway, chance)
        status, kind, body = send(gateway, PATHS[dialect], request)
        assert b"something went wrong inside the gateway" not in body, request
        if status == 200:
            try:
                JUDGES[dialect](kind, body)
            except Exception as error:
                raise AssertionError(f"{request}\n{body.decode()[:3000]}") from error
        else:
            fault = json.loads(body)["error"]
            assert fault if dialect == "ollama" else fault["message"], request
        statuses.append(status)
    assert statuses.count(200) > COUNT // 4
    assert statuses.count(400) > 0
