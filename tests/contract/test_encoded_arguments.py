"""Arguments have the form of the client's schema at every guard level, also if the back end got another schema."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.dialects.upstream_events import gemini_call, gemini_chunk
from tests.server.answers import PATHS
from tests.server.harness import Upstream, ask, gateway, server_config
from toolwire.config.file import BackendConfig, Config, with_backends
from toolwire.config.secret import Secret
from toolwire.types import ToolCall

from .harness import NAMES, Stage, answered, calls_play, stream_steps, talk

STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"
WHOLE = "/v1beta/models/m:generateContent"
LEVELS = ("off", "check", "repair", "retry")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"options": {"type": "object"}, "flag": {"enum": [True]}, "what": {}},
    "required": ["options"],
}
WRITTEN = {"options": '{"depth": 3}', "flag": "true", "what": "[1]"}
MEANT = {"options": {"depth": 3}, "flag": True, "what": [1]}
STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


@contextlib.contextmanager
def staged() -> Iterator[Stage]:
    upstream = Upstream()
    subset = [
        BackendConfig(
            name=f"subset-{level}",
            kind="gemini",
            base_url=f"{upstream.url}/v1beta",
            profile="gemini-subset",
            key=Secret("sk-upstream"),
            models=("m",),
            guard=level,  # type: ignore[arg-type] # one of them
        )
        for level in LEVELS
    ]
    strict = [
        BackendConfig(
            name=f"strict-{level}",
            kind="openai-chat",
            base_url=f"{upstream.url}/v1",
            profile="openai",
            key=Secret("sk-upstream"),
            models=("m",),
            guard=level,  # type: ignore[arg-type] # one of them
        )
        for level in LEVELS
    ]
    try:
        with gateway(with_backends(Config(server=server_config()), (*subset, *strict))) as running:
            yield Stage(upstream, running)
    finally:
        upstream.close()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with staged() as opened:
        yield opened


def calls(client: str, answer: Any, *, stream: bool) -> list[Any]:
    parts = answered(client, answer, stream=stream)
    return [json.loads(part.raw) for part in parts if isinstance(part, ToolCall)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_string_that_encodes_an_object_is_decoded(stage: Stage, client: str, level: str, stream: bool) -> None:
    path = stage.upstream.on(
        STREAM if stream else WHOLE,
        stream_steps(gemini_chunk(gemini_call("c0", "weather", WRITTEN)), gemini_chunk(finish="STOP")),
    )
    body = {"model": f"subset-{level}/m", **talk(client, tools={"weather": SCHEMA}, stream=stream)}
    answer = ask(stage.server.port, "POST", PATHS[client], body)
    assert calls(client, answer, stream=stream) == [MEANT]
    (entry,) = stage.upstream.requests(path)[-1].json["tools"]
    told = entry["functionDeclarations"][0]["parameters"]["properties"]
    assert told["options"]["type"] == told["what"]["type"] == "string"
    assert told["flag"] == {"type": "string", "enum": ["true"]}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("client", ["responses", "messages"])
def test_a_null_that_encodes_an_absent_member_is_removed(stage: Stage, client: str, level: str) -> None:
    stage.upstream.on("m", calls_play("chat", ("call_1", "weather", ['{"city": "Os', 'lo", "days": null}'])))
    body = talk(client, tools={"weather": STRICT})
    body["tools"][0]["strict"] = True
    answer = ask(stage.server.port, "POST", PATHS[client], {"model": f"strict-{level}/m", **body})
    assert calls(client, answer, stream=True) == [{"city": "Oslo"}]
    sent = stage.upstream.requests("m")[-1].json["tools"][0]["function"]
    assert (sent["strict"], sent["parameters"]["required"]) == (True, ["city", "days"])
