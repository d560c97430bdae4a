"""Cursor: the blobs of a run. The server keeps nothing: it asks its client for the history, and gives it what is to be kept.

It waits for each answer, also where that says no more than that a blob was taken. Among what it gives are the model's messages as
JSON; there are runs whose text comes in no other way.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from ...types import Json, Loss
from ...wire.exact import BadJson, decode
from . import agent

LARGEST = 16 * 1024 * 1024
MOST = 64 * 1024 * 1024  # of a run, beside those given with the request
_OVERHEAD = 128  # what an entry costs beside its bytes


class Blobs:
    """given are the request's own. losses are for whoever tells them, and cleared then."""

    def __init__(self, given: Mapping[bytes, bytes]) -> None:
        self._given = given
        self._set: dict[bytes, bytes] = {}
        self._size = 0
        self._text = ""
        self._before: set[bytes] = set()  # digests of what the answers before this one told
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

    def rest(self, told: str) -> str:
        """What the last message of the assistant says beyond that which was told of it."""
        is_new = self._text.startswith(told) and _digest(self._text) not in self._before
        return self._text[len(told) :] if is_new else ""

    def next_answer(self, told: str) -> None:
        """What was kept until now belongs to the answers before, also where the server gives it again."""
        self._text = ""
        self._before.add(_digest(told))

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
        self._text = assistant_text(data) or self._text
        size = self._size - _cost(blob_id, self._set.get(blob_id)) + _cost(blob_id, data)
        if len(data) > LARGEST or size > MOST:
            why = f"a blob of {len(data)} bytes is beyond what is kept of a run; it was taken and forgotten"
            self.losses.append(Loss("cursor.blob", blob_id[:8].hex(), why))
            return
        self._set[blob_id], self._size = data, size


def assistant_text(data: bytes) -> str:
    """The text of one message of the assistant; "" where these bytes are anything else."""
    if not data.startswith(b"{") or b'"assistant"' not in data:
        return ""
    try:
        message = decode(data)
    except BadJson:
        return ""
    if message.get("role") != "assistant":
        return ""
    content = message.get("content")
    return content if isinstance(content, str) else "".join(map(_text, content if isinstance(content, list) else ()))


def _text(item: Json) -> str:
    text = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _cost(blob_id: bytes, data: bytes | None) -> int:
    return 0 if data is None else len(blob_id) + len(data) + _OVERHEAD
