"""A small client of the Agent API for the tests of the simulator: h2 and sockets by hand, nothing of the back end."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import json
import struct
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import h2.config
import h2.connection
import h2.events

from toolwire.backends.cursor.simulator.settings import TOKEN
from toolwire.backends.cursor.wire import agent

RUN = "/agent.v1.AgentService/Run"
RUN_SSE = "/agent.v1.AgentService/RunSSE"
APPEND = "/aiserver.v1.BidiService/BidiAppend"
SECONDS = 5.0


def headers(**more: str) -> dict[str, str]:
    """Those of a good client; an empty one is left out."""
    found = {
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/connect+proto",
        "connect-protocol-version": "1",
        "x-cursor-client-type": "cli",
        "x-cursor-client-version": "cli-2026.08.11-e8db854",
        "x-ghost-mode": "true",
        "x-request-id": str(uuid.uuid4()),
    }
    found |= {name.replace("_", "-"): value for name, value in more.items()}
    return {name: value for name, value in found.items() if value}


def framed(data: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(data)) + data


def tool(name: str = "look", schema: str = '{"type":"object"}', **more: Any) -> Any:
    given = {"name": name, "tool_name": name, "provider_identifier": "tw", "input_schema_json": schema, **more}
    return agent.McpToolDefinition(**given)


def blobs_of(messages: Iterable[dict[str, Any]]) -> dict[bytes, bytes]:
    written = [json.dumps(message).encode() for message in messages]
    return {hashlib.sha256(data).digest(): data for data in written}


def opening(text: str = "hello", *, roots: Iterable[bytes] = (), tools: Iterable[Any] = (), **members: Any) -> Any:
    """An AgentClientMessage with a run_request; a member that is None is left out."""
    given: dict[str, Any] = {
        "conversation_state": agent.ConversationStateStructure(root_prompt_messages_json=list(roots)),
        "action": {"user_message_action": {"user_message": {"text": text, "message_id": "m1"}}},
        "requested_model": {"model_id": "default"},
        "mcp_tools": {"mcp_tools": list(tools)},
        "conversation_id": "c1",
        "run_id": "r1",
        **members,
    }
    request = agent.AgentRunRequest(**{name: value for name, value in given.items() if value is not None})
    if given["conversation_state"] is not None:
        request.conversation_state.SetInParent()
    return agent.AgentClientMessage(run_request=request)


class Client:
    """Plays a run: answers what must be answered, and keeps all that came."""

    def __init__(self, url: str) -> None:
        self.host, _, port = url.removeprefix("http://").partition(":")
        self.port = int(port)
        self.messages: list[Any] = []
        self.end: dict[str, Any] | None = None
        self.status = 0
        self.how = ""  # a run over HTTP/2 ended
        self.number = 0
        self.append_statuses: list[int] = []
        self.append_body = b""
        self.answer_headers: dict[str, str] = {}
        self.frames: list[int] = []  # flags
        self.blobs: dict[bytes, bytes] = {}
        self.tools: list[Any] = []
        self.rules: list[Any] = []
        self.on_call: Callable[[Any], Any] = lambda call: "fine"  # text, McpResult, or None for no answer
        self.closes = True
        self.ignored: set[str] = set()  # kinds that get no answer
        self._held = b""

    # What came

    @property
    def text(self) -> str:
        return "".join(update.text_delta.text for update in self.updates("text_delta"))

    @property
    def thought(self) -> str:
        return "".join(update.thinking_delta.text for update in self.updates("thinking_delta"))

    @property
    def calls(self) -> list[Any]:
        execs = [message.exec_server_message for message in self.messages if message.HasField("exec_server_message")]
        return [exec.mcp_args for exec in execs if exec.HasField("mcp_args")]

    @property
    def kinds(self) -> list[str]:
        """The messages in order, by their innermost names."""
        found = []
        for message in self.messages:
            outer = message.WhichOneof("message")
            inner = getattr(message, outer) if outer else message
            name = inner.WhichOneof("message") if outer and "message" in inner.DESCRIPTOR.oneofs_by_name else None
            found.append(name or outer or "nothing")
        return found

    def updates(self, kind: str) -> list[Any]:
        inner = [message.interaction_update for message in self.messages]
        return [update for update in inner if update.WhichOneof("message") == kind]

    @property
    def error(self) -> dict[str, Any]:
        assert self.end is not None, "no end frame came"
        found: dict[str, Any] = self.end.get("error", {})
        return found

    # What is answered

    def feed(self, data: bytes) -> list[bytes]:
        """The answers to what came, each an AgentClientMessage."""
        self._held += data
        answers: list[bytes] = []
        while len(self._held) >= 5:
            flags, size = struct.unpack(">BI", self._held[:5])
            if len(self._held) < 5 + size:
                break
            payload, self._held = self._held[5 : 5 + size], self._held[5 + size :]
            self.frames.append(flags)
            payload = gzip.decompress(payload) if flags & 1 else payload
            if flags & 2:
                self.end = json.loads(payload)
            else:
                message = agent.AgentServerMessage.FromString(payload)
                self.messages.append(message)
                answers += [answer.SerializeToString() for answer in self.answers(message)]
        return answers

    def answers(self, message: Any) -> list[Any]:
        kind = self.kinds[-1]
        if kind in self.ignored:
            return []
        if message.HasField("exec_server_message"):
            return self._exec(message.exec_server_message, kind)
        if message.HasField("kv_server_message"):
            query = message.kv_server_message
            if query.HasField("get_blob_args"):
                result: Any = {"get_blob_result": {"blob_data": self.blobs.get(query.get_blob_args.blob_id, b"")}}
            else:
                self.blobs[query.set_blob_args.blob_id] = query.set_blob_args.blob_data
                result = {"set_blob_result": {}}
            return [agent.AgentClientMessage(kv_client_message=agent.KvClientMessage(id=query.id, **result))]
        if message.HasField("interaction_query"):
            response = agent.InteractionResponse(id=message.interaction_query.id)
            query = message.interaction_query.WhichOneof("query") or ""
            getattr(response, query.replace("_query", "_response").replace("_args", "_result")).SetInParent()
            return [agent.AgentClientMessage(interaction_response=response)]
        return []

    def _exec(self, exec: Any, kind: str) -> list[Any]:
        name = kind.removesuffix("_args")
        result = agent.ExecClientMessage(id=exec.id, exec_id=exec.exec_id)
        if name == "request_context":
            context = agent.RequestContext(tools=self.tools, rules=self.rules)
            result.request_context_result.success.request_context.CopyFrom(context)
            result.request_context_result.success.SetInParent()
        elif name == "mcp":
            answer = self.on_call(exec.mcp_args)
            if answer is None:
                return []
            if isinstance(answer, str):
                answer = agent.McpResult(success={"content": [{"text": {"text": answer}}]})
            result.mcp_result.CopyFrom(answer)
        elif name == "mcp_allowlist_precheck":
            result.mcp_allowlist_precheck_result.allowlisted = True
        elif name == "shell_stream":
            result.shell_stream.stdout.data = "out"
        else:
            getattr(result, f"{name}_result").rejected.reason = "no"
        close = agent.ExecClientControlMessage(stream_close={"id": exec.id})
        closing = [agent.AgentClientMessage(exec_client_control_message=close)] if self.closes else []
        return [agent.AgentClientMessage(exec_client_message=result), *closing]

    # HTTP/2

    async def run(self, first: Any, *, half_close: bool = False, path: str = RUN, **more: str) -> Client:
        """A whole run over HTTP/2; comes back at its end, however it ends."""
        async with asyncio.timeout(SECONDS):
            async with await Link.open(self) as link:
                link.begin(path, headers(**more))
                link.send(framed(first.SerializeToString()))
                if half_close:
                    link.half_close()
                self.how = await link.listen()
        return self

    # HTTP/1.1

    async def run_sse(self, first: Any, *, start: int = 0, **more: str) -> Client:
        """A whole run over RunSSE and BidiAppend."""
        request_id = str(uuid.uuid4())
        given = headers(x_request_id=request_id, **more)
        body = framed(agent.BidiRequestId(request_id=request_id).SerializeToString())
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(self.host, self.port)
            try:
                writer.write(_request(RUN_SSE, given, body))
                await self._head(reader)
                self.number = start
                self.append_statuses.append(await self.append(request_id, first.SerializeToString()))
                await self._chunks(reader, request_id)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()
        return self

    async def append(self, request_id: str, message: bytes, number: int | None = None, **more: str) -> int:
        """The status of one append."""
        request = agent.BidiAppendRequest(data=message.hex(), append_seqno=self.number if number is None else number)
        request.request_id.request_id = request_id
        if number is None:
            self.number += 1
        given = headers(content_type="application/proto", x_request_id=request_id, **more)
        status, _, self.append_body = await self.unary(APPEND, request.SerializeToString(), given)
        return status

    async def unary(self, path: str, body: bytes, given: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(_request(path, given, body))
            async with asyncio.timeout(SECONDS):
                status, answered = await _head(reader)
                return status, answered, await reader.readexactly(int(answered["content-length"]))
        finally:
            writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> None:
        self.status, self.answer_headers = await _head(reader)

    async def _chunks(self, reader: asyncio.StreamReader, request_id: str) -> None:
        if "transfer-encoding" not in self.answer_headers:
            return
        while size := int(await reader.readuntil(b"\r\n"), 16):
            data = (await reader.readexactly(size + 2))[:-2]
            for answer in self.feed(data):
                self.append_statuses.append(await self.append(request_id, answer))


class Link:
    """One HTTP/2 connection with one stream."""

    def __init__(self, client: Client, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.client = client
        self.reader = reader
        self.writer = writer
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.http.initiate_connection()
        self.stream = 0
        self.how = ""  # it ended
        self.is_open = False

    @classmethod
    async def open(cls, client: Client) -> Link:
        return cls(client, *await asyncio.open_connection(client.host, client.port))

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def begin(self, path: str, given: dict[str, str]) -> None:
        self.stream = self.http.get_next_available_stream_id()
        pseudo = {":method": "POST", ":scheme": "http", ":authority": "127.0.0.1", ":path": path}
        self.http.send_headers(self.stream, [*pseudo.items(), *given.items()])
        self.is_open = True

    def send(self, data: bytes) -> None:
        if self.is_open:
            self.http.send_data(self.stream, data)
            self.writer.write(self.http.data_to_send())

    def half_close(self) -> None:
        self.http.end_stream(self.stream)
        self.writer.write(self.http.data_to_send())
        self.is_open = False

    async def listen(self, seconds: float = SECONDS) -> str:
        """How the stream ended within these seconds: end, reset, goaway or lost; timeout if it did not."""
        self.writer.write(self.http.data_to_send())
        try:
            async with asyncio.timeout(seconds):
                while not self.how:
                    await self._read()
        except TimeoutError:
            return "timeout"
        return self.how

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Listen until it is so; raises TimeoutError if it never is."""
        async with asyncio.timeout(SECONDS):
            while not is_so() and not self.how:
                await self._read()

    async def _read(self) -> None:
        try:
            data = await self.reader.read(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.how = "lost"
            return
        for event in self.http.receive_data(data):
            self._take(event)
        self.writer.write(self.http.data_to_send())

    def _take(self, event: Any) -> None:
        match event:
            case h2.events.ResponseReceived():
                named = {str(name): str(value) for name, value in event.headers or []}
                self.client.status = int(named[":status"])
                self.client.answer_headers = named
            case h2.events.DataReceived():
                self.http.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
                for answer in self.client.feed(event.data or b""):
                    self.send(framed(answer))
            case h2.events.StreamEnded():
                self.how, self.is_open = "end", False
            case h2.events.StreamReset():
                self.how, self.is_open = "reset", False
            case h2.events.ConnectionTerminated():
                self.how, self.is_open = "goaway", False

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def _request(path: str, given: dict[str, str], body: bytes) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in given.items()]
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n{''.join(lines)}\r\n"
    return head.encode() + body


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip("\r\n").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return int(first.split(" ")[1]), {name: value for name, _, value in pairs}
