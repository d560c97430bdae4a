"""Broken conversations of clients of Ollama and Interactions, on upstreams that reject what providers reject."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.contract.strict.front_encoders import front_case
from tests.contract.strict.generator import marks_in
from tests.contract.strict.refusals import Refused
from tests.contract.strict.upstream import judge
from tests.pipeline.jobs import prepared
from toolwire.backends.base import Backend
from toolwire.backends.http.transport import Transport
from toolwire.backends.registry import build
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS, FRONTS
from toolwire.errors import BadRequest
from toolwire.pipeline.prepare import Preparation

QUICK, MANY = 300, 4000
CONFIGS = {
    "chat": BackendConfig(name="chat", kind="openai-chat", base_url="https://api.openai.com/v1"),
    "responses": BackendConfig(name="responses", kind="openai-responses", base_url="https://api.openai.com/v1"),
    "messages": BackendConfig(name="messages", kind="anthropic", base_url="https://api.anthropic.com"),
}
TRANSPORT = Transport()
BACKENDS: dict[str, Backend] = {name: build(config, TRANSPORT) for name, config in CONFIGS.items()}
PREPARATION = Preparation()


def check(numbers: range, *, is_broken: bool = True) -> None:
    undecoded: Counter[str] = Counter()
    for number in numbers:
        broken = front_case(number, is_broken=is_broken)
        try:
            request = FRONTS[broken.client].decode_request(json.dumps(broken.body).encode(), {})
        except BadRequest as error:
            undecoded[f"{broken.client} {error.where}"] += 1
            continue
        if not request.messages:  # a client of Ollama then only loads the model
            continue
        dialect = list(CONFIGS)[number // 2 % 3]
        job = prepared(request, BACKENDS[dialect], preparation=PREPARATION)
        body = DIALECTS[dialect].encode_request(job.request, BACKENDS[dialect].profile).body
        name = f"front_case({number}) {broken.client} -> {dialect}, {', '.join(broken.ways)}"
        try:
            judge(dialect, json.loads(body), broken.client)
        except Refused as refusal:
            raise AssertionError(f"{name}: {refusal.where} {refusal.words}") from None
        assert not broken.words - marks_in(body.decode()), name
    assert undecoded.keys() <= {"interactions input"}


def test_H032_H033_H034_H042_no_provider_rejects_a_repaired_history() -> None:
    check(range(QUICK))


def test_no_provider_rejects_a_valid_history() -> None:
    check(range(QUICK), is_broken=False)


@pytest.mark.slow
def test_no_provider_rejects_any_of_thousands() -> None:
    check(range(QUICK, MANY))
