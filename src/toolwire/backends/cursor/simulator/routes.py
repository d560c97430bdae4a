"""The methods of the service: paths, content types, tokens, and runs in two halves."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from ....types import JsonObject
from ....wire.connect import BadConnectStream, ConnectDecoder, ConnectFrame, end, fault_object, frame
from ..wire import agent
from .http1 import HttpExchange, HungUp
from .journal import Run
from .run import SimulatedRun, SimulatorState
from .settings import ERRORS, Error, RunRefused, Settings, SimulatorFaults, refused

_STATUS = {
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "resource_exhausted": 429,
    "unavailable": 503,
}
_STREAM = ("application/connect+proto",)
_UNARY = ("application/proto", "application/json")
_SECRET = ("authorization", "cookie")


class Routes:
    """Answers HTTP requests. Appends find their RunSSE by its request id."""

    def __init__(self, state: SimulatorState, faults: SimulatorFaults | Sequence[SimulatorFaults]) -> None:
        self.tokens = TokenRegistry(state.settings)
        self._state = state
        self._faults = faults
        self._appends: dict[str, Appends] = {}
        self._is_opened = asyncio.Condition()

    async def handle(self, exchange: HttpExchange) -> None:
        try:
            await self._answer(exchange)
        except RunRefused as refusal:
            with contextlib.suppress(HungUp):
                await _fail(exchange, refusal.error)
        except HungUp:
            pass
        finally:
            self._state.journal.request(exchange.version, exchange.path, exchange.status)

    async def _answer(self, exchange: HttpExchange) -> None:
        methods: dict[str, tuple[Sequence[str], Callable[[HttpExchange], Awaitable[None]]]] = {
            "/agent.v1.AgentService/Run": (_STREAM, self._run),
            "/agent.v1.AgentService/RunSSE": (_STREAM, self._run_sse),
            "/aiserver.v1.BidiService/BidiAppend": (_UNARY[:1], self._append),
            "/agent.v1.AgentService/GetUsableModels": (_UNARY, self._models),
            "/aiserver.v1.AiService/GetUsableModels": (_UNARY, self._models),
            "/aiserver.v1.ServerConfigService/GetServerConfig": (_UNARY, self._config),
            "/auth/exchange_user_api_key": (("application/json",), self._exchange),
        }
        known, method = methods.get(exchange.path, ((), None))
        content_type = exchange.headers.get("content-type", "").split(";")[0].strip()
        if method is None:
            await exchange.start(404, {}, is_last=True)
        elif exchange.version == "1.1" and exchange.path.endswith("/Run"):
            await exchange.start(464, {}, is_last=True)
        elif exchange.method != "POST":
            await exchange.start(405, {"allow": "POST"}, is_last=True)
        elif content_type not in known:
            await exchange.start(415, {}, is_last=True)
        else:
            await method(exchange)

    async def _run(self, exchange: HttpExchange) -> None:
        turn = await self._begin(exchange, exchange.headers.get("x-request-id", ""), "run")
        if turn is None:
            return
        serving = asyncio.create_task(turn.serve())
        reading = asyncio.create_task(_read_into(turn, exchange))
        try:
            await asyncio.wait({serving})
        finally:
            for task in (reading, serving):
                task.cancel()
            await asyncio.gather(reading, serving, return_exceptions=True)

    async def _run_sse(self, exchange: HttpExchange) -> None:
        frames = ConnectDecoder().feed(await exchange.body())
        if len(frames) != 1 or not isinstance(frames[0], ConnectFrame):
            return await _end(exchange, refused("invalid_argument", "expected one message").error)
        request_id = agent.BidiRequestId.FromString(frames[0].data).request_id
        if request_id in self._appends or exchange.headers.get("x-request-id", request_id) != request_id:
            return await _end(exchange, refused("invalid_argument", "Invalid request id").error)
        turn = await self._begin(exchange, request_id, "sse")
        if turn is None:
            return None
        async with self._is_opened:
            self._appends[request_id] = Appends(turn, is_ordered=self._state.settings.orders_appends)
            self._is_opened.notify_all()
        try:
            await turn.serve()
        finally:
            self._appends[request_id].close()
        return None

    async def _begin(self, exchange: HttpExchange, request_id: str, transport: Any) -> SimulatedRun | None:
        """None if the run is refused at once."""
        journal = self._state.journal
        faults = self._faults_of(len(journal.runs))
        headers = {name: value for name, value in exchange.headers.items() if name not in _SECRET}
        run = Run(
            number=len(journal.runs),
            transport=transport,
            http=exchange.version,
            request_id=request_id,
            headers=headers,
            at=journal.now,
        )
        journal.runs.append(run)
        if faults.status:
            await exchange.start(faults.status, {}, is_last=True)
            journal.close(run, "refused", f"status {faults.status}")
            return None
        try:
            self.tokens.check(exchange.headers.get("authorization", ""))
        except RunRefused as refusal:
            journal.close(run, "refused", str(refusal))
            await _end(exchange, refusal.error)
            return None
        return SimulatedRun(exchange, run, self._state, faults)

    async def _append(self, exchange: HttpExchange) -> None:
        self.tokens.check(exchange.headers.get("authorization", ""))
        try:
            request = agent.BidiAppendRequest.FromString(await exchange.body())
            data = bytes(request.data_binary) or bytes.fromhex(request.data)
        except (DecodeError, ValueError):
            raise refused("invalid_argument", "cannot decode the message; data is lowercase hexadecimal") from None
        if request.data != request.data.lower():
            raise refused("invalid_argument", "data is lowercase hexadecimal")
        (await self._appends_of(request.request_id.request_id)).take(request.append_seqno, data)
        await exchange.start(200, {"content-type": "application/proto"}, is_last=True)

    async def _appends_of(self, request_id: str) -> Appends:
        """An append may arrive shortly before the request that opens its run."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._state.settings.append_wait), self._is_opened:
                await self._is_opened.wait_for(lambda: request_id in self._appends)
        if request_id not in self._appends:
            raise refused("not_found", "No run has this request id")
        return self._appends[request_id]

    async def _models(self, exchange: HttpExchange) -> None:
        self.tokens.check(exchange.headers.get("authorization", ""))
        await exchange.body()
        models: Any = [
            {"model_id": name, "display_model_id": name, "display_name": name.title()}
            for name in self._state.settings.models
        ]
        if exchange.headers.get("content-type") == "application/json":
            listed = [{"modelId": model["model_id"], "displayName": model["display_name"]} for model in models]
            return await exchange.answer_json(200, {"models": listed})
        data = agent.GetUsableModelsResponse(models=models).SerializeToString()
        body = frame(data) + end() if self._state.settings.is_enveloped else data
        return await exchange.answer(200, "application/proto", body)

    async def _config(self, exchange: HttpExchange) -> None:
        self.tokens.check(exchange.headers.get("authorization", ""))
        await exchange.body()
        own = f"http://{exchange.headers.get('host', '127.0.0.1')}"
        urls = {"agentUrl": own, "agentnUrl": own}
        await exchange.answer_json(200, {"agentUrlConfig": urls, "http2Config": self._state.settings.http2_config})

    async def _exchange(self, exchange: HttpExchange) -> None:
        await exchange.body()
        status, body = self.tokens.exchange(exchange.headers.get("authorization", ""))
        self._state.journal.exchanges += status == 200
        await exchange.answer_json(status, body)

    def _faults_of(self, number: int) -> SimulatorFaults:
        if isinstance(self._faults, SimulatorFaults):
            return self._faults
        return self._faults[number] if number < len(self._faults) else SimulatorFaults()


async def _read_into(turn: SimulatedRun, exchange: HttpExchange) -> None:
    decoder = ConnectDecoder()
    try:
        while data := await exchange.read():
            for item in decoder.feed(data):
                if not isinstance(item, ConnectFrame):
                    raise BadConnectStream("a client must not send an end frame")
                turn.receive(item.data)
        turn.half_close()
    except BadConnectStream as fault:
        turn.refuse(refused("invalid_argument", f"protocol error: {fault}"))


async def _end(exchange: HttpExchange, error: Error) -> None:
    """A stream with only an end frame, which carries the error."""
    await exchange.start(200, {"content-type": "application/connect+proto"})
    await exchange.write(end(error.as_fault()))
    await exchange.finish()


async def _fail(exchange: HttpExchange, error: Error) -> None:
    """The error of a unary method has an HTTP status."""
    await exchange.answer_json(_STATUS.get(error.code, 500), fault_object(error.as_fault()))


class TokenRegistry:
    """The tokens of one simulator."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._issued: dict[str, float] = {}  # token -> expiry
        self._refreshing: set[str] = set()
        self.revoked: set[str] = set()

    def check(self, authorization: str) -> None:
        """Raises RunRefused for an unknown or expired token."""
        token = authorization.removeprefix("Bearer ")
        if token in self.revoked or (token not in self._settings.tokens and token not in self._issued):
            raise RunRefused(ERRORS["unauthorized"])
        if token in self._issued and self._issued[token] <= time.time():
            raise RunRefused(ERRORS["token_expired"])

    def exchange(self, authorization: str) -> tuple[int, JsonObject]:
        """Status and body. A refresh token is accepted like a key."""
        key = authorization.removeprefix("Bearer ")
        if key not in self._settings.api_keys and key not in self._refreshing:
            return 401, {"code": "unauthenticated", "message": "Invalid API key"}
        if self._settings.is_sign_in_barred:
            return 403, {"code": "permission_denied", "message": "sign_in_policy_violation"}
        return 200, self._issue()

    def _issue(self) -> JsonObject:
        expires = time.time() + self._settings.token_seconds
        claims = {"sub": "auth0|simulated", "exp": int(expires), "type": "session", "jti": secrets.token_hex(8)}
        token = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}.{secrets.token_urlsafe(32)}"
        refresh = f"refresh_{secrets.token_hex(16)}"
        self._issued[token] = expires
        self._refreshing.add(refresh)
        return {"accessToken": token, "refreshToken": refresh}


def _encoded(value: JsonObject) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class Appends:
    """The client's messages over RunSSE: numbered from 0, without gaps. is_ordered: early ones wait for their turn."""

    def __init__(self, turn: SimulatedRun, *, is_ordered: bool) -> None:
        self._turn = turn
        self._is_ordered = is_ordered
        self._next = 0
        self._early: dict[int, bytes] = {}
        self._is_closed = False

    def take(self, number: int, data: bytes) -> None:
        """Raises RunRefused for an unexpected number."""
        if self._is_closed:
            raise refused("not_found", "The run of this request id is over")
        if number < self._next or number in self._early:
            raise self._refused(f"Duplicate append_seqno {number}; expected {self._next}")
        if number > self._next and not self._is_ordered:
            raise self._refused(f"append_seqno {number} is out of order; expected {self._next}")
        self._early[number] = data
        while self._next in self._early:
            message = self._early.pop(self._next)
            self._next += 1
            self._turn.run.appends += 1
            self._turn.receive(message)

    def close(self) -> None:
        self._is_closed = True
        self._early.clear()

    def _refused(self, why: str) -> Exception:
        self._turn.run.offences.append(why)
        return refused("invalid_argument", why)
