"""Requests of the server that the client must answer: execs, blobs and questions. The run waits for each answer."""

from __future__ import annotations

import asyncio
from typing import Any

from ..wire import agent
from .journal import CallRecord, Journal, Run
from .script import ClientResult
from .settings import refused

_STREAMED = "shell_stream"


class Pending:
    """Matches the client's answers with the requests. An answer without a request is an offence."""

    def __init__(self, run: Run, journal: Journal, *, needs_close: bool) -> None:
        self._run = run
        self._journal = journal
        self._needs_close = needs_close
        self._execs: dict[int, tuple[CallRecord, asyncio.Future[ClientResult], list[Any]]] = {}
        self._others: dict[tuple[str, int], asyncio.Future[Any]] = {}

    def expect(self, record: CallRecord) -> asyncio.Future[ClientResult]:
        record.sent_at = self._journal.now
        self._run.execs.append(record)
        future: asyncio.Future[ClientResult] = asyncio.get_running_loop().create_future()
        self._execs[record.id] = (record, future, [])
        return future

    def expect_other(self, kind: str, number: int) -> asyncio.Future[Any]:
        """kind: get_blob, set_blob or query."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._others[kind, number] = future
        return future

    def exec(self, message: Any) -> None:
        """An ExecClientMessage."""
        if message.id not in self._execs:
            return self._record_offence(f"a result for the exec {message.id}, which was never sent")
        record, future, parts = self._execs[message.id]
        field = message.WhichOneof("message")
        if message.exec_id != record.exec_id:
            return self._record_offence(f"a result for the exec {message.id} with the exec_id {message.exec_id!r}")
        if field is None or record.kind not in _answered_by(field):
            return self._record_offence(f"{field} for the exec {message.id}, which was {record.kind}_args")
        is_stream = record.kind == _STREAMED
        if record.answers and (not is_stream or record.is_closed):
            record.answers += 1
            return self._record_offence(
                f"result {record.answers} for the exec {message.id} ({record.kind} {record.call_id!r})"
            )
        record.answers = 1
        record.answered_at = self._journal.now
        parts.append(getattr(message, field))
        if not is_stream and not self._needs_close:
            self._complete(record, future, parts)
        return None

    def control(self, message: Any) -> None:
        """An ExecClientControlMessage."""
        field = message.WhichOneof("message") or ""
        number = getattr(message, field).id if field else 0
        if number not in self._execs:
            return self._record_offence(f"{field} for the exec {number}, which was never sent")
        record, future, parts = self._execs[number]
        if field == "heartbeat":
            record.heartbeats.append(self._journal.now)
        elif field == "throw":
            record.answers += 1
            record.result, record.text = "thrown", message.throw.error
            if record.answers > 1:
                return self._record_offence(f"throw after a result for the exec {number}")
            future.set_result(_result(record, [message.throw], "thrown"))
        elif field == "stream_close":
            if record.is_closed:
                return self._record_offence(f"a second stream_close for the exec {number}")
            record.is_closed = True
            if parts and not future.done():
                self._complete(record, future, parts)
        return None

    def other(self, kind: str, number: int, answer: Any) -> None:
        future = self._others.get((kind, number))
        if future is None or future.done():
            why = "was never sent" if future is None else "was answered before"
            return self._record_offence(f"an answer to {kind} {number}, which {why}")
        future.set_result(answer)
        return None

    def _complete(self, record: CallRecord, future: asyncio.Future[ClientResult], parts: list[Any]) -> None:
        result = _result(record, parts)
        record.result, record.text = result.kind, result.text[:2000]
        detail = {"exec": record.id, "call_id": record.call_id, "result": result.kind, "text": record.text[:200]}
        self._journal.note("result", self._run, **detail)
        if record.kind == "mcp" and result.kind == "error":
            # The error member is for faults of the client: a failed tool is a success with is_error.
            future.set_exception(refused("internal", f"Tool execution failed: {result.text[:200]}"))
        elif not future.done():
            future.set_result(result)

    def _record_offence(self, why: str) -> None:
        self._journal.offence(why, self._run)


def exec_message(record: CallRecord, args: Any) -> Any:
    """The AgentServerMessage with this exec."""
    field: Any = {f"{record.kind}_args": args}
    try:
        inner: Any = agent.ExecServerMessage(id=record.id, exec_id=record.exec_id, **field)
    except (ValueError, TypeError) as fault:
        raise refused("internal", f"the model requested an invalid exec: {fault}") from None
    return agent.AgentServerMessage(exec_server_message=inner)


def _answered_by(field: str) -> tuple[str, ...]:
    """The kinds that a result answers. A shell_stream may end with a shell_result."""
    if field == _STREAMED:
        return (_STREAMED,)
    return ("shell", _STREAMED) if field == "shell_result" else (field.removesuffix("_result"),)


def _result(record: CallRecord, parts: list[Any], kind: str = "") -> ClientResult:
    """kind: the member that was set in the last part, if that is known."""
    last = parts[-1]
    groups = [last.WhichOneof(group.name) for group in last.DESCRIPTOR.oneofs]
    kind = kind or next((member for member in groups if member), "")
    texts, images, is_error = [], [], False
    if record.kind == "mcp" and kind == "success":
        is_error = last.success.is_error
        for item in last.success.content:
            if item.WhichOneof("content") == "image":
                images.append((item.image.mime_type, bytes(item.image.data)))
            else:
                texts.append(item.text.text)
    elif record.kind == _STREAMED and kind != "thrown":
        streamed = [part for part in parts if part.DESCRIPTOR.name == "ShellStream"]
        texts = [part.stdout.data for part in streamed if part.WhichOneof("event") == "stdout"]
    else:
        texts = [last.error if kind == "thrown" else _text_of(last, kind)]
        is_error = kind not in ("success", "")
    return ClientResult(
        call_id=record.call_id,
        name=record.name,
        kind=str(kind),
        text="".join(texts),
        is_error=is_error,
        images=tuple(images),
        messages=tuple(parts),
    )


def _text_of(message: Any, kind: str | None) -> str:
    """The first text of a result of any type: content, output, error, reason."""
    inner = getattr(message, kind) if kind else message
    if not hasattr(inner, "DESCRIPTOR"):
        return str(inner)
    for name in ("content", "stdout", "output", "error", "reason", "message", "text"):
        value = getattr(inner, name, None)
        if isinstance(value, str) and value:
            return value
    return ""
