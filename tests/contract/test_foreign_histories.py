"""Histories that other clients, gateways and frameworks write, on upstreams that reject what providers reject.

The ways are in strict/foreign.py. Each is accepted and reaches every upstream in a valid form, with every marked word.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.strict import sdk_types
from tests.contract.strict.foreign import WAYS, Way
from tests.contract.strict.generator import marks_in
from tests.contract.strict.refusals import Refused
from tests.contract.strict.upstream import CHECKS
from tests.pipeline.jobs import prepared
from toolwire.backends.base import Backend
from toolwire.backends.http.transport import Transport
from toolwire.backends.registry import build
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.pipeline.job import Job
from toolwire.pipeline.prepare import Preparation

CLIENTS = ("chat", "responses", "messages", "gemini")
_KINDS = {
    "chat": ("openai-chat", "https://api.openai.com/v1"),
    "responses": ("openai-responses", "https://api.openai.com/v1"),
    "messages": ("anthropic", "https://api.anthropic.com"),
    "gemini": ("gemini", "https://generativelanguage.googleapis.com"),
}
_TRANSPORT = Transport()
BACKENDS: dict[str, Backend] = {
    name: build(BackendConfig(name=name, kind=kind, base_url=url), _TRANSPORT) for name, (kind, url) in _KINDS.items()
}
PREPARATION = Preparation()


def job_of(client: str, body: dict[str, Any], upstream: str) -> Job:
    request = DIALECTS[client].decode_request(json.dumps(body).encode(), {})
    return prepared(request, BACKENDS[upstream], preparation=PREPARATION)


def sent(job: Job, upstream: str) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(
        DIALECTS[upstream].encode_request(job.request, BACKENDS[upstream].profile).body
    )
    return written


def judge(upstream: str, body: dict[str, Any], client: str) -> None:
    if upstream in CHECKS:
        CHECKS[upstream](body, **({"needs_tools": False} if client == upstream == "messages" else {}))
    sdk_types.check(upstream, body)


def outcome(way: Way, upstream: str) -> str:
    """What is wrong, "" if nothing is."""
    body = way.body
    try:
        job = job_of(way.client, body, upstream)
    except BadRequest as error:
        return f"400 {error.where}: {error.message}"
    written = sent(job, upstream)
    try:
        judge(upstream, written, way.client)
    except Refused as refusal:
        return f"refused: {refusal.where} {refusal.words}"
    if lost := marks_in(json.dumps(body)) - marks_in(json.dumps(written)):
        return f"lost: {sorted(lost)}"
    return ""


@pytest.mark.parametrize("upstream", CLIENTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_every_way_is_accepted_and_nothing_is_lost(client: str, upstream: str) -> None:
    found = {way.name: wrong for way in WAYS if way.client == client and (wrong := outcome(way, upstream))}
    assert found == {}
