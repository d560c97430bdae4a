"""Conversations broken in every way that clients are known to break them, on upstreams that reject what providers reject.

The upstreams, the ways and the words are in strict/, written without a look at the code that repairs.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import NamedTuple

import pytest

from tests.contract.strict.damage import WAYS
from tests.contract.strict.generator import DIALECTS as CLIENTS
from tests.contract.strict.generator import Case, case, marks_in
from tests.contract.strict.refusals import Refused
from tests.contract.strict.upstream import judge, strict_upstream
from tests.pipeline.jobs import prepared
from tests.server.harness import ask, gateway, server_config
from tests.thorough import is_thorough
from toolwire.backends.base import Backend
from toolwire.backends.http.transport import Transport
from toolwire.backends.registry import build
from toolwire.calls.ledger.repair import Recipient, repair_history
from toolwire.config.file import BackendConfig, Config
from toolwire.dialects import DIALECTS
from toolwire.errors import BadRequest
from toolwire.pipeline.prepare import Preparation
from toolwire.types import Request

QUICK, MANY, SERVED = 300, 10_000, 240
UPSTREAMS = {
    "chat": BackendConfig(name="chat", kind="openai-chat", base_url="https://api.openai.com/v1"),
    "responses": BackendConfig(name="responses", kind="openai-responses", base_url="https://api.openai.com/v1"),
    "messages": BackendConfig(name="messages", kind="anthropic", base_url="https://api.anthropic.com"),
    "gemini": BackendConfig(name="gemini", kind="gemini", base_url="https://generativelanguage.googleapis.com"),
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
UNREADABLE = "compaction_unreadable"
TRANSPORT = Transport()
BACKENDS: dict[str, Backend] = {name: build(config, TRANSPORT) for name, config in UPSTREAMS.items()}
PREPARATION = Preparation()


class Outcome(NamedTuple):
    """What came of some histories: refused by the upstream, by the gateway's own decoder, and words that did not arrive."""

    refused: list[str]
    undecoded: Counter[str]
    lost: list[str]


def sent(request: Request, dialect: str) -> bytes:
    """The body that the gateway writes for an upstream of this dialect."""
    backend = BACKENDS[dialect]
    job = prepared(request, backend, preparation=PREPARATION)
    return DIALECTS[dialect].encode_request(job.request, backend.profile).body


def decoded(broken: Case) -> Request:
    return DIALECTS[broken.client].decode_request(json.dumps(broken.body).encode(), {})


def outcome(numbers: range, upstreams: int = len(CLIENTS)) -> Outcome:
    """Of each history at so many upstreams, by turns."""
    found = Outcome([], Counter(), [])
    for number in numbers:
        broken = case(number)
        try:
            request = decoded(broken)
        except BadRequest as error:
            found.undecoded[f"{broken.client} {error.where}: {error.message}"] += 1
            continue
        for dialect in [*CLIENTS, *CLIENTS][number // len(CLIENTS) % len(CLIENTS) :][:upstreams]:
            name = f"case({number}) {broken.client} -> {dialect}, {', '.join(broken.ways)}"
            try:
                body = sent(request, dialect)
            except BadRequest as error:
                if error.code != UNREADABLE:  # a summary that only its own provider can read
                    raise
                continue
            try:
                judge(dialect, json.loads(body), broken.client)
            except Refused as refusal:
                found.refused.append(f"{name}: {refusal.where} {refusal.words}")
            is_summed_up = broken.client == "messages" and "summary_instead" in broken.ways  # what is before it is gone
            if (gone := broken.words - marks_in(body.decode())) and not is_summed_up:
                found.lost.append(f"{name}: {sorted(gone)}")
    return found


def check(found: Outcome) -> None:
    assert found.refused == []
    assert found.lost == []
    # A request without any message is refused, as by its own provider.
    assert {words.split(":")[0] for words in found.undecoded} <= {"messages messages", "gemini contents"}


def test_H032_H033_H034_H035_H038_H039_H040_H041_H042_H075_H076_H139_H140_no_provider_rejects_a_repaired_history() -> (
    None
):
    check(outcome(range(QUICK)))


@pytest.mark.slow
def test_no_provider_rejects_any_of_ten_thousand_repaired_histories() -> None:
    found = outcome(range(MANY), len(CLIENTS) if is_thorough() else 1)
    check(found)
    assert sum(found.undecoded.values()) < MANY // 50


@pytest.mark.slow
def test_providers_reject_them_without_repair() -> None:
    """Else the tests above would prove nothing; each way of breaking them is refused by some provider at least once."""
    refused: Counter[str] = Counter()
    for number in range(MANY // 5):
        broken = case(number)
        try:
            judge(broken.client, broken.body, broken.client)
        except Refused:
            refused.update(broken.ways)
    assert sum(refused.values()) > MANY // 10
    assert WAYS.keys() <= refused.keys()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_valid_history_is_accepted_and_stays_the_same_object(client: str) -> None:
    for number in range(CLIENTS.index(client), QUICK, len(CLIENTS)):
        whole = case(number, is_broken=False)
        judge(client, whole.body, client)
        request = decoded(whole)
        assert repair_history(request).request is request, f"case({number}, is_broken=False)"


@pytest.mark.slow
def test_repairing_a_history_twice_changes_nothing() -> None:
    for number in range(QUICK):
        try:
            request = decoded(case(number))
        except BadRequest:
            continue
        for is_strict in (False, True):
            once = repair_history(request, Recipient(is_strict=is_strict))
            again = repair_history(once.request, Recipient(is_strict=is_strict))
            assert again.request is once.request, f"case({number}), {is_strict}: {again.repairs}"
            assert (once.request is request) == (not once.repairs)


@pytest.mark.slow
def test_broken_histories_go_through_the_running_gateway() -> None:
    with strict_upstream() as upstream:
        backends = tuple(
            BackendConfig(
                name=name, kind=config.kind, base_url=f"{upstream.url}/v1", profile=BACKENDS[name].profile.name
            )
            for name, config in UPSTREAMS.items()
        )
        with gateway(Config(server=server_config(), backends=backends)) as running:
            for number in range(SERVED):
                broken, dialect = case(number), CLIENTS[number // len(CLIENTS) % len(CLIENTS)]
                upstream.expect(broken.client)
                kept = {"store": False} if broken.client == "responses" else {}  # else it would be kept here as well
                body = {**broken.body, **kept, "model": f"{dialect}/m"}
                path = PATHS.get(broken.client, f"/v1beta/models/{dialect}/m:generateContent")
                answer = ask(running.port, "POST", path, body)
                told = f"case({number}) {broken.client} -> {dialect}, {broken.ways}: {answer.body[:300]!r}"
                if answer.status == 400 and (
                    b"expected at least one" in answer.body or UNREADABLE.encode() in answer.body
                ):
                    continue
                assert answer.status == 200, told
                assert b"Fine." in answer.body, told
                assert broken.words <= marks_in(upstream.seen[-1][1].decode()), told
