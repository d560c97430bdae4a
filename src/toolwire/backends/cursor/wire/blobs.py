"""Cursor: the blobs of a run. The server keeps nothing: it asks its client for the history, and gives it what is to be kept.

It waits for each answer, also where that says no more than that a blob was taken. Among what it gives are the model's messages as
JSON; there are runs whose text comes in no other way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ....types import Json, Loss
from ....wire.exact_json import BadJson, decode
from . import agent
from .answer.blob_text import Message, Untold
from .answer.open_calls import first_line

LARGEST = 16 * 1024 * 1024
MOST = 64 * 1024 * 1024  # of a run, beside those given with the request
_OVERHEAD = 128  # what an entry costs beside its bytes


class Blobs:
    """given are the request's own. untold has the assistant's texts among the others. losses are for whoever tells them, and cleared
    then."""

    def __init__(self, given: Mapping[bytes, bytes]) -> None:
        self._given = given
        self._set: dict[bytes, bytes] = {}
        self._size = 0
        self.untold = Untold(self._said_before)
        self.losses: list[Loss] = []

    def answer(self, message: agent.KvServerMessage) -> bytes:
        answer = agent.KvClientMessage(id=message.id)
        match message.WhichOneof("message"):
            case "get_blob_args":
                answer.get_blob_result.CopyFrom(self._get(message.get_blob_args.blob_id))
            case "set_blob_args":
                self._take(message.set_blob_args.blob_id, message.set_blob_args.blob_data)
                answer.set_blob_result.SetInParent()
            case _:
                answer.get_blob_result.error.message = "this client can only get and set blobs"
        return agent.AgentClientMessage(kv_client_message=answer).SerializeToString()

    def _said_before(self) -> Iterator[Message]:
        """The server may give the history back in its own writing."""
        return filter(None, map(assistant_message, self._given.values()))

    def _get(self, blob_id: bytes) -> agent.GetBlobResult:
        data = self._given.get(blob_id)
        if data is None:
            data = self._set.get(blob_id)
        if data is None:
            return agent.GetBlobResult(error=agent.Error(message="not found"))
        return agent.GetBlobResult(blob_data=data)

    def _take(self, blob_id: bytes, data: bytes) -> None:
        if blob_id in self._given:
            return
        message = assistant_message(data)
        if message is not None and message.text and not self.untold.came(message.text, message.calls):
            self._lose(blob_id, f"a message of {len(message.text)} characters is beyond what can wait to be told")
        size = self._size - _cost(blob_id, self._set.get(blob_id)) + _cost(blob_id, data)
        if len(data) > LARGEST or size > MOST:
            self._lose(blob_id, f"a blob of {len(data)} bytes is beyond what is kept of a run")
            return
        self._set[blob_id], self._size = data, size

    def _lose(self, blob_id: bytes, why: str) -> None:
        self.losses.append(Loss("cursor.blob", blob_id[:8].hex(), f"{why}; it was taken and forgotten"))


def assistant_message(data: bytes) -> Message | None:
    """One message of the assistant; None where these bytes are anything else."""
    if not data.startswith(b"{") or b'"assistant"' not in data:
        return None
    try:
        message = decode(data)
    except BadJson:
        return None
    if message.get("role") != "assistant":
        return None
    content = message.get("content")
    if isinstance(content, str):
        return Message(content)
    items = content if isinstance(content, list) else []
    return Message("".join(map(_text, items)), frozenset(filter(None, map(_call, items))))


def _text(item: Json) -> str:
    text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _call(item: Json) -> str:
    call_id = item.get("toolCallId") if isinstance(item, dict) and item.get("type") == "tool-call" else ""
    return first_line(call_id) if isinstance(call_id, str) else ""


def _cost(blob_id: bytes, data: bytes | None) -> int:
    return 0 if data is None else len(blob_id) + len(data) + _OVERHEAD
