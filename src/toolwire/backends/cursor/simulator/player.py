"""Sends the steps of a model to the client."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from typing import Any, assert_never

from msgspec import Struct
from msgspec.structs import asdict, replace

from ....types import JsonObject
from ..wire import agent
from ..wire.values import to_value
from . import script
from .journal import CallRecord, Journal, Run
from .pending import Pending, exec_message
from .run_writer import RunWriter
from .settings import ERRORS, Error, RunRefused, Settings, SimulatorFaults, refused

_QUERY_ENDINGS = ("_request_query", "_interaction_query", "_args")


class TurnEnd(Exception):
    """turn_ended was sent; only the end of the stream is missing."""


class Player:
    """Plays the steps of one run, and collects the assistant message that the server stores."""

    def __init__(self, writer: RunWriter, pending: Pending, run: Run, journal: Journal, settings: Settings) -> None:
        self.writer = writer
        self.tools: tuple[script.Offered, ...] = ()
        self.roots: list[bytes] = []
        self._pending = pending
        self._run = run
        self._journal = journal
        self._settings = settings
        self._content: list[JsonObject] = []  # parts of the assistant's message
        self._results_at = 0  # their number when the last results came
        self._numbers = 0
        self._blobs = 0
        self._has_queried = False

    @property
    def faults(self) -> SimulatorFaults:
        return self.writer.faults

    async def play(self, step: script.Step) -> list[script.ClientResult]:
        match step:
            case script.Say():
                await self._say(step)
            case script.Think():
                await self._think(step)
            case script.MakeCall():
                return await self._call(script.MakeCalls((step,)))
            case script.MakeCalls():
                return await self._call(step)
            case script.Native():
                return [await self.ask(step.kind, {**step.args, **self._native_id(step)}, call_id=step.call_id)]
            case script.AskPerson():
                return [await self._query(step)]
            case script.SetBlob():
                await self._set_blob(step)
            case script.Checkpoint():
                await self._checkpoint(step)
            case script.Pause():
                await asyncio.sleep(step.seconds)
            case script.EndTurn():
                if self.faults.text_as_blob:
                    await self._set_blob(script.SetBlob())
                await self.end(step.usage)
            case script.Fail():
                raise RunRefused(ERRORS[step.error] if step.error else Error(code=step.code, message=step.message))
            case script.Disconnect():
                await self.writer.fail(step.how)
            case script.Stall():
                await self.writer.fail("silence" if step.is_silent else "stall")
            case script.With():
                self.writer.faults = step.faults
            case script.Raw():
                await self.writer.send_raw(bytes.fromhex(step.data))
            case _:
                assert_never(step)
        return []

    async def at(self, place: str) -> None:
        """Apply the fault that is configured for this place."""
        how = self.faults.at.get(place, "")
        if how.startswith("error:"):
            raise RunRefused(ERRORS[how.removeprefix("error:")])
        if how:
            await self.writer.fail(how)

    async def ask(self, kind: str, args: Any, *, call_id: str = "", name: str = "") -> script.ClientResult:
        """Send one exec and wait for its answer."""
        record = self._record(kind, call_id, name)
        answer = self._pending.expect(record)
        await self.writer.send(exec_message(record, args))
        return await answer

    async def blob(self, blob_id: bytes) -> bytes:
        """Fetch a blob from the client; b"" if it has none."""
        self._blobs += 1
        answer = self._pending.expect_other("get_blob", self._blobs)
        await self._send(kv_server_message={"id": self._blobs, "get_blob_args": {"blob_id": blob_id}})
        self._run.fetched += 1
        return bytes((await answer).blob_data)

    async def finish(self) -> None:
        """End a turn whose model did not."""
        await self._stall_if_endless()
        await self._set_blob(script.SetBlob())
        await self._checkpoint(script.Checkpoint())
        tokens = len(self._run.text) // 4 + 1
        await self.end(script.TurnUsage(input=1000, output=tokens, cache_read=600, reasoning=0))

    async def _stall_if_endless(self) -> None:
        """The fault `endless`, as seen on the real server after the results of a parked run."""
        if self._is_endless:
            if self.faults.endless == "text":
                await self._set_blob(
                    script.SetBlob({"role": "assistant", "content": self._content[self._results_at :]})
                )
            await self.writer.fail("stall")

    @property
    def _is_endless(self) -> bool:
        return bool(self.faults.endless and self._results_at)

    async def end(self, usage: script.TurnUsage | None) -> None:
        await self._stall_if_endless()
        if not self.faults.no_turn_ended:
            counts = {} if usage is None or self.faults.empty_usage else asdict(usage)
            await self._update(turn_ended={f"{name}_tokens": count for name, count in counts.items()})
        await self.at("end")
        raise TurnEnd

    async def _say(self, step: script.Say) -> None:
        if self.faults.query and not self._has_queried:
            await self._query(script.AskPerson(self.faults.query))
        self._add_text(step.text)
        self._run.text += step.text
        if self.faults.text_as_blob or self._is_endless:
            return
        for number, piece in enumerate(_pieces(step.text, step.pieces)):
            if number and step.pause:
                await asyncio.sleep(step.pause)
            await self._update(text_delta={"text": piece, **({"is_server_notice": True} if step.is_notice else {})})
            await self._update(token_delta={"tokens": len(piece) // 4 + 1})
            if number == 0:
                await self.at("text")

    async def _think(self, step: script.Think) -> None:
        if self.faults.think_tags:
            for piece in _pieces(f"<think>{step.text}</think>", step.pieces + 2):
                await self._update(text_delta={"text": piece})
            return
        for piece in _pieces(step.text, step.pieces):
            await self._update(thinking_delta={"text": piece})
        await self._update(thinking_completed={"thinking_duration_ms": 7})

    async def _call(self, step: script.MakeCalls) -> list[script.ClientResult]:
        """Send all execs, then wait for the results."""
        if self.faults.native:
            await self.play(script.Native(self.faults.native))
        copies = range(max(1, self.faults.calls))
        calls = [OutgoingCall(call=_with_id(call, copy)) for call in step.calls for copy in copies]
        late = self.faults.late or step.late
        for number, outgoing in enumerate(calls):
            self._fill(outgoing)
            await self._precheck(outgoing)
            if outgoing.call.announce and (number == 0 or step.is_late_announced):
                await self._announce(outgoing)
        await self.at("call")
        for number, outgoing in enumerate(calls):
            if number and late:
                await asyncio.sleep(late)
            if number and outgoing.call.announce and not step.is_late_announced:
                await self._announce(outgoing)
            await self._send_call(outgoing)
        if "parked" in self.faults.at:
            await asyncio.sleep(self._settings.parked_seconds)
            await self.at("parked")
        results = [await outgoing.answer for outgoing in calls if outgoing.answer is not None]
        for outgoing in calls:
            await self._update(tool_call_completed={"call_id": outgoing.wire_id, "tool_call": _tool_call(outgoing)})
        self._results_at = len(self._content)
        await self.at("result")
        return results[:: len(copies)]

    def _fill(self, outgoing: OutgoingCall) -> None:
        """Encode the call, with the configured forms of names and ids."""
        call = outgoing.call
        tool = next((tool for tool in self.tools if call.name in (tool.name, tool.tool_name)), None)
        provider = tool.provider if tool is not None else "unknown"
        name = f"mcp_{provider}_{call.name}" if self.faults.prefixed_names else call.name
        outgoing.wire_id = f"{call.call_id}\nfc_{secrets.token_hex(8)}" if self.faults.newline_ids else call.call_id
        outgoing.args = agent.McpArgs(
            name=name,
            tool_name="" if self.faults.prefixed_names else tool.tool_name if tool is not None else call.name,
            provider_identifier=provider,
            tool_call_id=outgoing.wire_id,
            args={key: to_value(value) for key, value in call.args.items()},
        )
        self._content.append(
            {"type": "tool-call", "toolCallId": call.call_id, "toolName": call.name, "args": call.args}
        )

    async def _announce(self, outgoing: OutgoingCall) -> None:
        await self._update(tool_call_started={"call_id": outgoing.wire_id, "tool_call": _tool_call(outgoing)})
        written = json.dumps(outgoing.call.args, ensure_ascii=False)
        for piece in _pieces(written, 2):
            partial: Any = {"call_id": outgoing.wire_id, "tool_call": _tool_call(outgoing), "args_text_delta": piece}
            await self._update(partial_tool_call=partial)

    async def _precheck(self, outgoing: OutgoingCall) -> None:
        if self._settings.has_precheck:
            about = {"provider_identifier": outgoing.args.provider_identifier, "tool_name": outgoing.args.tool_name}
            allowed = await self.ask("mcp_allowlist_precheck", {**about, "tool_call_id": outgoing.wire_id})
            if not allowed.messages or not getattr(allowed.messages[0], "allowlisted", False):
                self._journal.note("not_allowed", self._run, tool=outgoing.call.name)

    async def _send_call(self, outgoing: OutgoingCall) -> None:
        record = self._record("mcp", outgoing.wire_id, outgoing.call.name)
        record.args = outgoing.call.args
        self._run.calls.append(record)
        outgoing.answer = self._pending.expect(record)
        self._journal.note(
            "call", self._run, call_id=outgoing.wire_id, name=outgoing.call.name, args=outgoing.call.args
        )
        for _ in range(2 if self.faults.repeat_exec else 1):
            await self.writer.send(exec_message(record, outgoing.args))

    async def _query(self, step: script.AskPerson) -> script.ClientResult:
        self._has_queried = True
        self._numbers += 1
        field = _query_field(step.kind)
        answer = self._pending.expect_other("query", self._numbers)
        await self._send(interaction_query={"id": self._numbers, field: step.args})
        response = await answer
        kind = response.WhichOneof("result") or ""
        if not kind or _number(response, kind) != _number(agent.InteractionQuery, field):
            self._journal.offence(f"{kind or 'nothing'} in answer to {field}", self._run)
        return script.ClientResult(call_id="", name=step.kind, kind=kind, messages=(response,))

    async def _set_blob(self, step: script.SetBlob) -> None:
        message = step.message or {"role": "assistant", "content": self._content}
        data = json.dumps(message, ensure_ascii=False).encode()
        self._blobs += 1
        blob_id = hashlib.sha256(data).digest()
        answer = self._pending.expect_other("set_blob", self._blobs)
        await self._send(
            kv_server_message={"id": self._blobs, "set_blob_args": {"blob_id": blob_id, "blob_data": data}}
        )
        await answer
        self.roots.append(blob_id)

    async def _checkpoint(self, step: script.Checkpoint) -> None:
        details: Any = {"used_tokens": step.used_tokens, "max_tokens": step.max_tokens}
        await self._send(
            conversation_checkpoint_update={"root_prompt_messages_json": self.roots, "token_details": details}
        )

    def _record(self, kind: str, call_id: str, name: str) -> CallRecord:
        self._numbers += 1
        return CallRecord(
            id=self._numbers, exec_id=f"exec-{secrets.token_hex(6)}", kind=kind, call_id=call_id, name=name
        )

    def _native_id(self, step: script.Native) -> JsonObject:
        fields = agent.ExecServerMessage.DESCRIPTOR.fields_by_name
        if f"{step.kind}_args" not in fields:
            raise refused("internal", f"the model requested the unknown exec {step.kind!r}")
        inner = fields[f"{step.kind}_args"].message_type
        has_id = inner is not None and "tool_call_id" in inner.fields_by_name
        return {"tool_call_id": step.call_id or _new_id()} if has_id else {}

    def _add_text(self, text: str) -> None:
        last = self._content[-1] if self._content else {}
        if last.get("type") == "text":
            last["text"] += text
        else:
            self._content.append({"type": "text", "text": text})

    async def _update(self, **update: Any) -> None:
        await self._send(interaction_update=update)

    async def _send(self, **message: Any) -> None:
        await self.writer.send(agent.AgentServerMessage(**message))


class OutgoingCall(Struct):
    """A call that is being made."""

    call: script.MakeCall
    wire_id: str = ""
    args: Any = None
    answer: asyncio.Future[script.ClientResult] | None = None


def _with_id(call: script.MakeCall, copy: int) -> script.MakeCall:
    """Each copy gets its own id."""
    return replace(call, call_id=f"{call.call_id or _new_id()}{f'_{copy}' if copy else ''}")


def _new_id() -> str:
    return f"toolu_{secrets.token_hex(10)}"


def _tool_call(outgoing: OutgoingCall) -> Any:
    return agent.ToolCall(tool_call_id=outgoing.wire_id, mcp_tool_call=agent.McpToolCall(args=outgoing.args))


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, count)))
    return [text[start : start + size] for start in range(0, len(text), size)]


def _number(message: Any, field: str) -> int:
    """A response has the field number of its query."""
    return int(message.DESCRIPTOR.fields_by_name[field].number)


def _query_field(kind: str) -> str:
    fields = agent.InteractionQuery.DESCRIPTOR.fields_by_name
    for ending in _QUERY_ENDINGS:
        if f"{kind}{ending}" in fields:
            return f"{kind}{ending}"
    raise refused("internal", f"the model asked the unknown question {kind!r}")
