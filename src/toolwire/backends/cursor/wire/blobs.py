"""Cursor: the blobs of a run. The server keeps nothing: it asks its client for the history, and gives it what is to be kept.

It waits for each answer, also where that says no more than that a blob was taken. Among what it gives are the model's messages as
JSON; there are runs whose text comes in no other way.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from ....types import Json, Loss
from ....wire.exact_json import BadJson, decode
from . import agent
from .pending import first_line
from .think_tags import Splitter

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


MOST_UNSENT = 16 * 1024 * 1024  # characters that wait to be told
_DIGEST = 16
_MOST_CALLS = 10_000


class Message(NamedTuple):
    """The text of one message of the assistant, and the ids of its calls."""

    text: str
    calls: frozenset[str] = frozenset()


class Untold:
    """One run. before gives what the assistant has said before it, and is asked once, if at all."""

    def __init__(self, before: Callable[[], Iterable[Message]] = tuple) -> None:
        self._before = before
        self._known: set[bytes] | None = None
        self._calls: set[str] = set()  # that the client knows, or that stand in the history
        self._repeated = ""
        self._is_of_run = False  # and not of the history
        self._is_blob = False  # the text that is sent at the moment comes from a blob
        self._has_streamed = False
        self._silent_since = 0  # bytes sent when the last step or answer ended
        self._steps: set[bytes] = set()  # what was told in each
        self._uncopied: Counter[bytes] = Counter()  # streamed ones of which no blob came yet
        self._step: list[str] = []
        self._run = blake2b(digest_size=_DIGEST)
        self._length = 0  # bytes that were told in the run
        self._waiting: deque[tuple[str, bool]] = deque()  # with whether it is new although it was sent before
        self._size = 0  # of what waits

    def __bool__(self) -> bool:
        """Whether there is a blob that was not looked at."""
        return bool(self._waiting)

    @property
    def has_spoken(self) -> bool:
        """In the present step."""
        return bool(self._step)

    @property
    def length(self) -> int:
        """Bytes of text that were sent in the run."""
        return self._length

    def told(self, text: str) -> None:
        self._has_streamed = self._has_streamed or not self._is_blob
        data = _bytes(text)
        self._run.update(data)
        self._length += len(data)
        self._step.append(text)

    def called(self, call_id: str) -> None:
        """The model made this call: a message that holds it is no new one."""
        if call_id and len(self._calls) < _MOST_CALLS:
            self._calls.add(call_id)

    def came(self, text: str, calls: frozenset[str] = frozenset()) -> bool:
        """The message of one blob. False: it is too much."""
        is_known = self._is_known(text)
        if is_known and (not calls or not calls.isdisjoint(self._calls)):
            if not self._is_copy(text) and not calls:
                self._repeated = text
                self._is_of_run = _print(text) in self._steps
            return True
        if self._waiting and text.startswith(self._waiting[-1][0]):
            self._size -= len(self._waiting.pop()[0])  # the same message, which has grown
        if self._size + len(text) > MOST_UNSENT:
            return False
        self._waiting.append((text, is_known))
        self._size += len(text)
        return True

    def next(self) -> str:
        """What is to be told now, message by message; "" where there is no more of it. Each is a step of its own."""
        self._is_blob = True
        if self._waiting and self._step and (rest := self._next_of_step()):
            return rest
        while self._waiting:
            text, is_new = self._taken(0)
            if is_new:
                return text
            if not self._is_known(text) and (beyond := self._beyond(text, "")):
                return beyond
        is_silent = not self._has_streamed and self._length == self._silent_since
        if is_silent and self._is_of_run and (text := self.repetition()):
            return text
        self._is_blob = False
        return ""

    def repetition(self) -> str:
        """The last text that came again, once; "" where there was none."""
        self._is_blob = True
        text, self._repeated = self._repeated, ""
        return text

    def end_step(self) -> None:
        if self._step:
            found = _print("".join(self._step))
            self._steps.add(found)
            self._uncopied[found] += not self._is_blob
            self._step.clear()
        self._is_blob = False

    def close(self) -> None:
        """A step with all its blobs, or an answer, has ended."""
        self._silent_since = self._length
        self._repeated = ""

    def _next_of_step(self) -> str:
        """Of the first that goes on from what was streamed; where none does, all are other wordings of that."""
        step = "".join(self._step)
        for number, (text, _) in enumerate(self._waiting):
            if (rest := self._beyond(text, step)) is not None:
                self._steps.add(_print(self._taken(number)[0]))
                self.end_step()
                return rest
        self._waiting.clear()
        self._size = 0
        return ""

    def _is_copy(self, text: str) -> bool:
        found = _print(text)
        if self._uncopied[found] <= 0:
            return False
        self._uncopied[found] -= 1
        return True

    def _taken(self, number: int) -> tuple[str, bool]:
        taken = self._waiting[number]
        del self._waiting[number]
        self._size -= len(taken[0])
        return taken

    def _beyond(self, text: str, step: str) -> str | None:
        """What it says beyond the run or the step; None where it begins otherwise."""
        data = _bytes(text)
        if 0 < self._length <= len(data) and _digest(data[: self._length]) == self._run.digest():
            return data[self._length :].decode("utf-8", "surrogatepass")
        if text.startswith(step):
            return text[len(step) :]
        plain = _plain(text)
        return plain[len(step) :] if plain.startswith(step) else None

    def _is_known(self, text: str) -> bool:
        if self._known is None:
            said = list(self._before())
            self._known = {_print(message.text) for message in said if message.text}
            self._calls.update(*(message.calls for message in said))
        found = _print(text)
        return found in self._steps or found in self._known


def _plain(text: str) -> str:
    """Without thoughts, which are told as such."""
    splitter = Splitter()
    return "".join(piece for kind, piece in [*splitter.feed(text), *splitter.close()] if kind == "text")


def _print(text: str) -> bytes:
    return _digest(_bytes(_plain(text).strip()))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
