from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import APPEND, RUN, RUN_SSE, Client, Link, framed, headers, opening
from tests.backends.cursor.simulator.playing import QUICK, TRANSPORTS, played
from toolwire.backends.cursor.simulator import API_KEY, TOKEN, Settings, Simulator
from toolwire.backends.cursor.wire import agent

MODELS = "/agent.v1.AgentService/GetUsableModels"
CONFIG = "/aiserver.v1.ServerConfigService/GetServerConfig"
EXCHANGE = "/auth/exchange_user_api_key"


def unary(path: str, body: bytes = b"", settings: Settings = QUICK, **given: str) -> tuple[int, dict[str, str], bytes]:
    async def main() -> tuple[int, dict[str, str], bytes]:
        async with Simulator(settings=settings) as simulator:
            return await Client(simulator.url).unary(path, body, headers(**given))

    return asyncio.run(main())


def test_a_run_over_http_1_is_a_bare_464() -> None:
    status, answered, body = unary(RUN, framed(opening().SerializeToString()))
    assert (status, body) == (464, b"")
    assert "content-type" not in answered


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        (RUN_SSE, "application/proto"),
        (RUN_SSE, "application/json"),
        (APPEND, "application/connect+proto"),
        (MODELS, "application/connect+proto"),
        (EXCHANGE, "application/proto"),
    ],
)
def test_a_wrong_content_type_is_a_415_without_a_body(path: str, content_type: str) -> None:
    status, _, body = unary(path, content_type=content_type)
    assert (status, body) == (415, b"")


def test_a_wrong_content_type_over_http_2() -> None:
    client, _ = played(content_type="application/proto")
    assert (client.status, client.messages) == (415, [])


def test_an_unknown_path() -> None:
    assert unary("/aiserver.v1.ChatService/StreamChat")[0] == 404


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("authorization", ["", "Bearer nobody", f"Bearer {API_KEY}", f"Bearer user_1%3A%3A{TOKEN}"])
def test_who_is_not_known_is_told_so_in_the_end_frame(transport: str, authorization: str) -> None:
    client, journal = played(transport, authorization=authorization)
    assert (client.status, client.error["code"]) == (200, "unauthenticated")
    assert client.error["details"][0]["debug"]["error"] == "ERROR_UNAUTHORIZED"
    assert journal.runs[0].state == "refused"


def test_who_is_not_known_gets_401_on_a_unary_method() -> None:
    status, _, body = unary(MODELS, authorization="Bearer nobody", content_type="application/proto")
    assert (status, json.loads(body)["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("is_enveloped", [False, True])
def test_the_models(is_enveloped: bool) -> None:
    settings = Settings(models=("default", "composer-2"), is_enveloped=is_enveloped)
    status, _, body = unary(MODELS, settings=settings, content_type="application/proto")
    assert status == 200
    data = body[5 : 5 + int.from_bytes(body[1:5], "big")] if is_enveloped else body
    listed: Any = agent.GetUsableModelsResponse.FromString(data)
    assert [model.model_id for model in listed.models] == ["default", "composer-2"]


def test_the_models_as_json_and_the_configuration() -> None:
    status, _, body = unary(MODELS, b"{}", content_type="application/json")
    assert (status, json.loads(body)["models"][0]["modelId"]) == (200, "default")
    status, _, body = unary(CONFIG, b"{}", content_type="application/json")
    assert (status, json.loads(body)["agentUrlConfig"]["agentUrl"]) == (200, "http://127.0.0.1")


def test_an_api_key_becomes_a_token_that_works() -> None:
    async def main() -> tuple[Client, int]:
        async with Simulator(settings=QUICK) as simulator:
            client = Client(simulator.url)
            given = headers(authorization=f"Bearer {API_KEY}", content_type="application/json")
            _, _, body = await client.unary(EXCHANGE, b"{}", given)
            token = json.loads(body)["accessToken"]
            await client.run(opening(), authorization=f"Bearer {token}")
            return client, simulator.journal.exchanges

    client, exchanges = asyncio.run(main())
    assert (client.error, exchanges) == ({}, 1)


def test_run_sse_takes_one_message_and_one_id() -> None:
    def error(body: bytes, **given: str) -> str:
        async def main() -> str:
            async with Simulator(settings=QUICK) as simulator:
                reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
                named = headers(**given)
                lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
                head = f"POST {RUN_SSE} HTTP/1.1\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{lines}\r\n"
                writer.write(head.encode() + body)
                answer = await reader.read()
                writer.close()
                return answer.decode("latin-1")

        return asyncio.run(main())

    assert "expected one message" in error(b"")
    other = agent.BidiRequestId(request_id="a").SerializeToString()
    assert "Invalid request id" in error(framed(other), x_request_id="b")


@pytest.mark.parametrize("data", [b"\x02\x00\x00\x00\x02{}", b"\x00\x40\x00\x00\x00", b"\x01\x00\x00\x00\x01x"])
def test_frames_that_no_client_may_send(data: bytes) -> None:
    async def main() -> Client:
        async with Simulator(settings=QUICK) as simulator:
            client = Client(simulator.url)
            async with await Link.open(client) as link:
                link.begin(RUN, headers())
                link.send(data)
                await link.listen()
            return client

    assert asyncio.run(main()).error["code"] == "invalid_argument"
