"""Generated requests, many of them broken, through a running gateway: every answer is valid in the client's dialect, errors too."""

from __future__ import annotations

import copy
import json
import random
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.clients.gateway import KINDS, Gateway, scripted
from tests.thorough import is_thorough

from .client_requests import DIALECTS, ask
from .hostile_json import ODD, places
from .judge.validate import check
from .request_members import BASES, MEMBERS, Body

pytestmark = pytest.mark.slow  # a gateway and its upstream as processes

COUNT = 1000 if is_thorough() else 150  # for each dialect
TEXTS = ("fine", "Let me look.", 'é中😀 \\ " \t', "```json\n{}\n```", "x" * 2000)
ARGUMENTS: tuple[Body, ...] = ({}, {"city": "Oslo"}, {"city": 'é中😀\n"\\'}, {"city": 5}, {"city": "a", "n": 10**25})


def damage(body: Body, chance: random.Random) -> None:
    """One value becomes another, or goes."""
    *way, key = chance.choice([path for path in places(body) if path[0] not in ("model", "stream")])
    owner: Any = body
    for step in way:
        owner = owner[step]
    if chance.random() < 0.25:
        del owner[key]
    else:
        owner[key] = copy.deepcopy(chance.choice(ODD))


def turn(chance: random.Random) -> Body:
    """What the model says; its arguments are JSON, because only then is every fault of an answer ours."""
    said: Body = {"text": chance.choice(TEXTS)}
    if chance.random() < 0.3:
        said["reasoning"] = "hm"
    if chance.random() < 0.6:
        said["calls"] = [
            {"name": "weather", "arguments": chance.choice(ARGUMENTS)} for _ in range(chance.randrange(1, 4))
        ]
    if chance.random() < 0.1:
        said["error"] = {"status": chance.choice([400, 429, 500, 529]), "message": "no", "after": chance.choice([0, 2])}
    if chance.random() < 0.1:
        said["refusal"] = "I will not."
    return said


def generated(dialect: str, gateway: Gateway, chance: random.Random) -> Body:
    body = copy.deepcopy(BASES[dialect])
    for member in chance.sample(sorted(MEMBERS[dialect]), chance.choice([0, 1, 2, 4, 8])):
        body |= copy.deepcopy(MEMBERS[dialect][member])
    words = scripted(turn(chance))
    prompt: Body = (
        {"role": "user", "parts": [{"text": words}]} if dialect == "gemini" else {"role": "user", "content": words}
    )
    said = body[{"responses": "input", "gemini": "contents"}.get(dialect, "messages")]
    if isinstance(said, list):
        said.append(prompt)
    for _ in range(chance.choice([0, 0, 1, 2])):
        damage(body, chance)
    back_end, verbatim = chance.choice(sorted(KINDS)), chance.choice(["auto", "never", "functions"])
    return body | {"model": gateway.model(back_end, verbatim), "stream": chance.random() < 0.5}


def is_known(fault: str, request: Body) -> bool:
    """The judge reads tools from the list alone, and knows no streamed calls of freeform tools in Chat Completions."""
    is_freeform = '"custom"' in json.dumps(request.get("tools"))
    return "was not declared" in fault or (is_freeform and ("tool_calls" in fault or "arguments" in fault))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_answer_is_valid(gateway: Gateway, dialect: str) -> None:
    chance = random.Random(f"requests of {dialect}")
    statuses: list[int] = []
    for _ in range(COUNT):
        request = generated(dialect, gateway, chance)
        connection = HTTPConnection(gateway.address.removeprefix("http://"), timeout=30)
        reply = ask(connection, dialect, gateway.key, request)
        connection.close()
        report = check(dialect, reply.body, reply.status, reply.content_type, request)
        faults = [fault for fault in report.errors if not is_known(str(fault), request)]
        assert not faults, (request, faults)
        assert b"something went wrong inside the gateway" not in reply.body, request
        statuses.append(reply.status)
    assert statuses.count(200) > COUNT // 4
    assert statuses.count(400) > 0
