from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from typing import Any

import pytest

from tests.backends.cursor.simulator.client import (
    APPEND,
    RUN,
    RUN_SSE,
    Client,
    Link,
    _head,
    _request,
    framed,
    headers,
    opening,
)
from tests.backends.cursor.simulator.single_run import QUICK, TRANSPORTS, run_once
from toolwire.backends.cursor.simulator.routes import TokenRegistry
from toolwire.backends.cursor.simulator.server import Simulator
from toolwire.backends.cursor.simulator.settings import API_KEY, TOKEN, RunRefused, Settings
from toolwire.backends.cursor.wire import agent

pytestmark = pytest.mark.slow  # starts a server

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
    client, _ = run_once(content_type="application/proto")
    assert (client.status, client.messages) == (415, [])


def test_an_unknown_path() -> None:
    assert unary("/aiserver.v1.ChatService/StreamChat")[0] == 404


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("authorization", ["", "Bearer nobody", f"Bearer {API_KEY}", f"Bearer user_1%3A%3A{TOKEN}"])
def test_an_unknown_client_gets_the_error_in_the_end_frame(transport: str, authorization: str) -> None:
    client, journal = run_once(transport, authorization=authorization)
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


def refusal(passes: TokenRegistry, token: str) -> str:
    with pytest.raises(RunRefused) as caught:
        passes.check(f"Bearer {token}")
    return caught.value.error.name


def test_a_token_says_when_it_expires() -> None:
    passes = TokenRegistry(Settings(token_seconds=100))
    status, body = passes.exchange(f"Bearer {API_KEY}")
    header, claims, signature = body["accessToken"].split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert (status, bool(header), bool(signature)) == (200, True, True)
    assert 90 < decoded["exp"] - time.time() <= 100
    passes.check(f"Bearer {body['accessToken']}")


def test_a_token_expires() -> None:
    passes = TokenRegistry(Settings(token_seconds=-1))
    _, body = passes.exchange(f"Bearer {API_KEY}")
    assert refusal(passes, body["accessToken"]) == "ERROR_AUTH_TOKEN_EXPIRED"


def test_a_refresh_token_is_as_good_as_a_key() -> None:
    passes = TokenRegistry(Settings())
    _, first = passes.exchange(f"Bearer {API_KEY}")
    status, second = passes.exchange(f"Bearer {first['refreshToken']}")
    assert status == 200
    assert first["accessToken"] != second["accessToken"]


def test_who_may_not_come_in() -> None:
    passes = TokenRegistry(Settings())
    passes.check(f"Bearer {TOKEN}")
    assert refusal(passes, "nobody") == "ERROR_UNAUTHORIZED"
    assert refusal(passes, API_KEY) == "ERROR_UNAUTHORIZED"
    assert passes.exchange("Bearer nobody")[0] == 401
    passes.revoked.add(TOKEN)
    assert refusal(passes, TOKEN) == "ERROR_UNAUTHORIZED"


def test_a_policy_may_bar_the_sign_in() -> None:
    status, body = TokenRegistry(Settings(is_sign_in_barred=True)).exchange(f"Bearer {API_KEY}")
    assert (status, body["message"]) == (403, "sign_in_policy_violation")


BEAT = agent.AgentClientMessage(client_heartbeat={}).SerializeToString()


def statuses(*numbers: int, orders: bool = False) -> tuple[list[int], str, int]:
    """The status of each append, what the last one said, and how many counted."""

    async def main() -> tuple[list[int], str, int]:
        settings = Settings(orders_appends=orders, append_wait=0.05)
        async with Simulator(settings=settings) as simulator:
            client, request_id = Client(simulator.url), str(uuid.uuid4())
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            body = framed(agent.BidiRequestId(request_id=request_id).SerializeToString())
            writer.write(_request(RUN_SSE, headers(x_request_id=request_id), body))
            await _head(reader)
            found = []
            for number in numbers:
                message = BEAT if number else opening().SerializeToString()
                found.append(await client.append(request_id, message, number))
            writer.close()
            return found, client.append_body.decode(), simulator.journal.runs[0].appends

    return asyncio.run(main())


def test_appends_in_order() -> None:
    assert statuses(0, 1, 2) == ([200, 200, 200], "", 3)


@pytest.mark.parametrize(
    ("numbers", "why"), [((0, 2), "out of order"), ((1,), "out of order"), ((0, 1, 1), "Duplicate")]
)
def test_a_number_that_is_not_the_next_is_refused(numbers: tuple[int, ...], why: str) -> None:
    found, answer, counted = statuses(*numbers)
    assert (found[-1], counted) == (400, len(numbers) - 1)
    assert json.loads(answer)["code"] == "invalid_argument"
    assert why in answer


def test_appends_may_overtake_each_other_by_a_switch() -> None:
    assert statuses(2, 1, 0, orders=True) == ([200, 200, 200], "", 3)
    assert statuses(0, 2, 2, orders=True)[0] == [200, 200, 400]


def test_an_append_without_a_run_is_not_found() -> None:
    async def main() -> int:
        async with Simulator(settings=Settings(append_wait=0.05)) as simulator:
            return await Client(simulator.url).append("nobody", BEAT, 0)

    assert asyncio.run(main()) == 404


def test_an_append_may_come_a_little_before_its_run() -> None:
    async def main() -> list[int]:
        async with Simulator() as simulator:
            client, request_id = Client(simulator.url), str(uuid.uuid4())
            early = asyncio.create_task(client.append(request_id, opening().SerializeToString(), 0))
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", simulator.port)
            body = framed(agent.BidiRequestId(request_id=request_id).SerializeToString())
            writer.write(_request(RUN_SSE, headers(x_request_id=request_id), body))
            await _head(reader)
            status = await early
            writer.close()
            return [status, simulator.journal.runs[0].appends]

    assert asyncio.run(main()) == [200, 1]


def test_data_is_lowercase_hexadecimal() -> None:
    async def main(data: str) -> int:
        async with Simulator() as simulator:
            request = agent.BidiAppendRequest(data=data, append_seqno=0)
            given = headers(content_type="application/proto")
            path = "/aiserver.v1.BidiService/BidiAppend"
            return (await Client(simulator.url).unary(path, request.SerializeToString(), given))[0]

    assert asyncio.run(main("3A00")) == 400
    assert asyncio.run(main("zz")) == 400


def test_every_message_of_a_run_is_an_append() -> None:
    client, journal = run_once("run_sse")
    assert (client.append_statuses, journal.runs[0].appends) == ([200] * 8, 8)
