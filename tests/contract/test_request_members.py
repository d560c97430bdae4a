"""No member of a request is lost silently: in another dialect it arrives, or a loss names it."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsBase
from msgspec.structs import replace
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from tests.pipeline.jobs import prepared
from toolwire.backends.http.backend import HttpBackend
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.dialects import DIALECTS, FRONTS
from toolwire.types import Loss

from .front_members import FRONT_BASES, FRONT_MEMBERS
from .request_members import BASES as TWO_WAY_BASES
from .request_members import MEMBERS as TWO_WAY_MEMBERS
from .request_members import NUMBERS, Body

BASES = {**TWO_WAY_BASES, **FRONT_BASES}
MEMBERS = {**TWO_WAY_MEMBERS, **FRONT_MEMBERS}
KINDS = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic", "gemini": "gemini"}
HOSTS = {
    "chat": ("host.example", "api.openai.com", "openrouter.ai", "api.moonshot.ai"),
    "responses": ("host.example", "api.openai.com"),
    "messages": ("host.example", "api.anthropic.com"),
    "gemini": ("host.example", "generativelanguage.googleapis.com"),
}
MODELS = {"messages": ("claude-sonnet-4-5", "claude-opus-5"), "gemini": ("gemini-2.5-pro", "gemini-3-pro")}
# A request that says nothing asks for the same.
SERVED = {
    ("chat", "reasoning_effort.none", "messages"),
    ("gemini", "generationConfig.thinkingConfig.thinkingBudget.off", "messages"),
    ("ollama", "think off", "messages"),
    ("ollama", "stream", "gemini"),  # the path says it
    ("interactions", "stream", "gemini"),
}
# The gateway itself does what they ask for: tests/pipeline/compaction.
OWN = {("responses", "context_management"), ("messages", "context_management"), ("messages", "compaction")}
CASES = [
    (left, member, right)
    for left in MEMBERS
    for member in MEMBERS[left]
    for right in KINDS
    if right != left and (left, member) not in OWN
]


def sent(left: str, body: Body, right: str, host: str, model: str) -> tuple[str, set[Loss]]:
    """What a back end gets of a request, and what is reported as lost."""
    request = FRONTS[left].decode_request(json.dumps(body).encode(), {})
    config = BackendConfig(name="b", kind=KINDS[right], base_url=f"https://{host}")  # type: ignore[arg-type] # one of them
    backend = HttpBackend(config, Transport())
    job = prepared(replace(request, model=model), backend)
    encoded = DIALECTS[right].encode_request(job.request, backend.profile)
    return encoded.body.decode(), {*job.losses, *encoded.losses}


def marks(value: Any) -> set[str]:
    """What must be found again on the other side, as JSON."""
    if isinstance(value, dict):
        return {mark for item in value.values() for mark in marks(item)}
    if isinstance(value, list):
        return {mark for item in value for mark in marks(item)}
    if isinstance(value, str):
        return set(re.findall(r"mark_\w+", value))
    return {json.dumps(value)} if value in NUMBERS and not isinstance(value, bool) else set()


def parents(member: str) -> list[str]:
    """The members that this one is a part of, the nearest first: it is compared with a request that has them without it."""
    names = member.split(".")
    return [".".join(names[:count]) for count in range(len(names) - 1, 0, -1)]


@pytest.mark.parametrize(("left", "member", "right"), CASES)
def test_a_member_arrives_or_is_reported(left: str, member: str, right: str) -> None:
    given = MEMBERS[left][member]
    shorter = next((name for name in parents(member) if name in MEMBERS[left]), "")
    before = {**BASES[left], **MEMBERS[left].get(shorter, {})}
    for host in HOSTS[right]:
        for model in MODELS.get(right, ("m",)):
            plain, known = sent(left, before, right, host, model)
            body, losses = sent(left, {**BASES[left], **given}, right, host, model)
            if losses - known or (left, member, right) in SERVED:
                continue
            assert body != plain, f"{member} is lost without a report ({host}, {model})"
            missing = {mark for mark in marks(given) if mark not in body}
            assert not missing, f"{missing} of {member} are lost without a report ({host}, {model})"


DOCUMENTED = {
    "chat": set(CompletionCreateParamsBase.__annotations__),
    "responses": set(ResponseCreateParamsBase.__annotations__),
    "messages": set(MessageCreateParamsBase.__annotations__),
}
# Stands in the path or in a header, or is served by the gateway itself (docs/state.md).
ELSEWHERE = {
    "chat": {"model"},
    "responses": {"model", "background", "conversation", "previous_response_id", "prompt", "store"},
    "messages": {"model", "betas", "thread"},
}


@pytest.mark.parametrize("dialect", DOCUMENTED)
def test_every_documented_member_is_tried(dialect: str) -> None:
    tried = {re.split(r"[. ]", member)[0] for member in MEMBERS[dialect]}
    assert DOCUMENTED[dialect] - ELSEWHERE[dialect] <= tried


@pytest.mark.slow
def test_every_documented_member_of_a_generation_config_is_tried() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own texts
        from google.genai.types import GenerationConfig
    documented = {field.alias or name for name, field in GenerationConfig.model_fields.items()}
    tried = {name.split(".")[1] for name in MEMBERS["gemini"] if name.startswith("generationConfig.")}
    assert documented <= tried


@pytest.mark.slow
def test_every_documented_member_of_ollama_is_tried() -> None:
    from ollama._types import ChatRequest, GenerateRequest, Message

    generate = {"prompt", "system", "images", "suffix", "context", "template", "raw"}  # tests/dialects/ollama
    pictures = {"width", "height", "steps"}  # of models that make images; they are reported as unknown members
    tried = {re.split(r"[. ]", member)[0] for member in MEMBERS["ollama"]}
    assert {*ChatRequest.model_fields, *GenerateRequest.model_fields} - generate - pictures - {"model"} <= tried
    read = {"role", "content", "tool_name"} | {
        name.split(".")[1] for name in MEMBERS["ollama"] if name.startswith("messages.")
    }
    assert set(Message.model_fields) <= read


@pytest.mark.slow
def test_every_documented_member_of_an_interaction_is_tried() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own texts
        from google.genai._gaos.types import interactions
    served = {"model", "store", "background", "previous_interaction_id"}
    refused = {"continuation_token", "environment"}
    tried = {re.split(r"[. ]", member)[0] for member in MEMBERS["interactions"]}
    assert set(interactions.CreateModelInteraction.model_fields) - served - refused <= tried
    configured = {"temperature"} | {
        name.split(".")[1] for name in MEMBERS["interactions"] if name.startswith("generation_config.")
    }
    assert set(interactions.GenerationConfig.model_fields) <= configured
