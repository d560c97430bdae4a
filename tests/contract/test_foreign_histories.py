"""Histories that other clients, gateways and frameworks write, on upstreams that reject what providers reject.

The ways are in strict/foreign.py. Each is accepted and reaches every upstream in a valid form, with every marked word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.strict import sdk_types
from tests.contract.strict.foreign import GONE, VALID, WAYS, Way
from tests.contract.strict.generator import marks_in
from tests.contract.strict.refusals import Refused
from tests.contract.strict.upstream import CHECKS, strict_upstream
from tests.pipeline.jobs import prepared
from tests.server.harness import ask, gateway, server_config
from toolwire.backends.base import Backend
from toolwire.backends.http.transport import Transport
from toolwire.backends.registry import build
from toolwire.config.file import BackendConfig, Config
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
_LISTS = {"chat": "messages", "responses": "input", "messages": "messages", "gemini": "contents"}
_PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
_DAMAGE: dict[str, Any] = {
    "absent": GONE,
    "null": None,
    "text": "x",
    "empty text": "",
    "number": 7,
    "fraction": 1.5,
    "boolean": False,
    "empty list": [],
    "list": ["y"],
    "empty object": {},
    "object": {"k": "v"},
}
_MEANINGLESS = ("number", "fraction", "boolean", "object")


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


def test_there_are_many_ways_and_providers_refuse_them_as_they_come() -> None:
    """Else the test above would prove nothing. What a provider refuses is reported."""
    refused = 0
    for way in WAYS:
        if way.client == "gemini":
            continue
        try:
            judge(way.client, way.body, way.client)
        except (Refused, AttributeError, KeyError, TypeError):  # the checks expect objects
            refused += 1
            job = job_of(way.client, way.body, way.client)
            written = DIALECTS[way.client].encode_request(job.request, job.backend.profile)
            # Names of tools are mapped both ways.
            assert job.losses or written.losses or job.names is not None, way.name
    assert refused > 300
    assert len({(way.client, way.name) for way in WAYS}) == len(WAYS) > 900


@pytest.mark.parametrize("client", CLIENTS)
def test_a_valid_history_is_sent_as_it_came(client: str) -> None:
    job = job_of(client, VALID[client], client)
    assert (job.received.repaired, job.losses, job.stale) == ((), [], "")
    judge(client, VALID[client], client)


_STORED = {"id": "x1", "timestamp": 5, "usage": {"input_tokens": 1}, "response_metadata": {}}


@pytest.mark.parametrize(
    ("client", "members"),
    [
        ("chat", _STORED),
        ("chat", {"annotations": [], "refusal": None, "audio": None, "function_call": None}),
        ("responses", {"usage": {}, "model": "m", "reasoning_content": "th"}),
        ("responses", {"role": "assistant", "stop_reason": "end_turn"}),
        ("messages", _STORED | {"reasoning_content": "th", "type": "message"}),
        ("gemini", _STORED),
    ],
)
def test_members_that_messages_do_not_have_are_dropped(client: str, members: dict[str, Any]) -> None:
    """Providers refuse them by name: "Unknown name", "Extra inputs are not permitted"."""
    name = _LISTS[client]
    known = {key for item in VALID[client][name] for key in item} - {"id"}
    for index, item in enumerate(VALID[client][name]):
        changes = tuple((f"{name}.{index}.{key}", value) for key, value in members.items() if key not in item)
        if client == "chat" and item["role"] == "assistant" and "annotations" in members:
            continue  # those are its own
        way = Way(client, "members of others", changes)
        assert outcome(way, client) == ""
        job = job_of(client, way.body, client)
        sent_items = sent(job, client)[name]
        assert not [key for one in sent_items for key in one if key in members and key not in known], changes
        assert not [one for one in sent_items if one.get("type") == "function_call" and "role" in one]
        assert any(loss.feature.startswith("history.") for loss in job.losses)


@pytest.mark.parametrize("upstream", CLIENTS)
def test_what_is_in_an_item_beside_its_own_members_is_not_lost(upstream: str) -> None:
    text = [{"type": "input_text", "text": "wd60q"}]
    for path, value in (("input.3.content", text), ("input.5.content", text), ("input.3.role", "user")):
        assert outcome(Way("responses", path, ((path, value),)), upstream) == "", path


@pytest.mark.slow
@pytest.mark.parametrize("upstream", CLIENTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_each_member_may_be_anything(client: str, upstream: str) -> None:
    """A history with one damaged member is accepted, unless a whole message became a value without meaning."""
    found: dict[str, str] = {}
    for path in members(VALID[client][_LISTS[client]], _LISTS[client]):
        for name, value in _DAMAGE.items():
            if (client, upstream) == ("gemini", "gemini") and name == "object":
                continue  # a part with unknown members may be a new one
            wrong = outcome(Way(client, f"{path}: {name}", ((path, value),)), upstream)
            if wrong and not (wrong.startswith("400") and path.count(".") == 1 and name in _MEANINGLESS):
                found[f"{path}: {name}"] = wrong
    assert found == {}


def members(value: Any, path: str) -> Iterator[str]:
    """The paths of all members, of the members of these, and so on."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield f"{path}.{key}"
        yield from members(item, f"{path}.{key}")


@pytest.mark.parametrize(
    ("client", "path", "value", "where"),
    [
        ("chat", "messages.3", 5, "messages[3]"),
        ("chat", "messages.3", {"x": 1}, "messages[3].role"),
        ("responses", "input.3", True, "input[3]"),
        ("responses", "input.3", {"type": "function_call", "id": "fc_1"}, "input[3].call_id"),
        ("messages", "messages.3", 1.5, "messages[3]"),
        ("messages", "messages.3", {"role": "narrator"}, "messages[3].role"),
        ("gemini", "contents.3", 5, "contents[3]"),
    ],
)
def test_what_has_no_meaning_is_refused_by_its_place(client: str, path: str, value: Any, where: str) -> None:
    body = Way(client, path, ((path, value),)).body
    with pytest.raises(BadRequest) as caught:
        job_of(client, body, client)
    assert caught.value.where == where


@pytest.mark.slow
@pytest.mark.parametrize("is_stream", [False, True])
def test_they_go_through_the_running_gateway(is_stream: bool) -> None:
    """Every tenth way, to each upstream by turns; the losses are in a header."""
    with strict_upstream() as upstream:
        backends = tuple(
            BackendConfig(name=name, kind=kind, base_url=f"{upstream.url}/v1", profile=BACKENDS[name].profile.name)  # type: ignore[arg-type] # one of the kinds
            for name, (kind, _) in _KINDS.items()
        )
        with gateway(Config(server=server_config(), backends=backends)) as running:
            for number, way in enumerate(WAYS[::10]):
                dialect = CLIENTS[number % len(CLIENTS)]
                upstream.expect(dialect if dialect == way.client and dialect in ("messages", "gemini") else "")
                body = {**way.body, "model": f"{dialect}/m", "stream": is_stream}
                path = _PATHS.get(way.client, "")
                if way.client == "gemini":
                    method = "streamGenerateContent?alt=sse" if is_stream else "generateContent"
                    path, body = f"/v1beta/models/{dialect}/m:{method}", way.body
                answer = ask(running.port, "POST", path, body)
                told = f"{way.client} -> {dialect}, {way.name}: {answer.body[:300]!r}"
                assert answer.status == 200, told
                assert b"Fine." in answer.body, told
                assert marks_in(json.dumps(body)) <= marks_in(upstream.seen[-1][1].decode()), told
