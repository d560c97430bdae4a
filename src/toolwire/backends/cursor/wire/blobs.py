"""The blobs of a run. The server stores nothing: it fetches the history from its client, and stores its own messages there.

It waits for the answer to each request. Among the blobs it stores are the model's messages as JSON. Most text is streamed and comes
again as a blob: the message of one step of the model, or all text of the run. There are runs in which some or all text comes only as
a blob. UnsentText compares each blob with the text sent in the current step and in the whole run, and returns what goes beyond it. A
blob that begins differently from the streamed text is another wording of it. A step ends with a request of the model, and with each
message that was taken from a blob.

The server may store a blob again, or send the history in its own form, so text that was sent before is not sent again. But a model
can produce the same text twice. Such a blob is new if it holds calls and none of them was seen before. The first blob of a streamed
text is its copy. Any other is a repetition, which is used only if there would be no text without it: for an answer that ends with
neither text nor calls, and, if it was sent in this run, for a step of a run that streams no text at all.
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
from .think_tags import ThinkTagSplitter

MAX_BLOB = 16 * 1024 * 1024
MAX_STORED = 64 * 1024 * 1024  # of a run, besides those sent with the request
MAX_UNSENT = 16 * 1024 * 1024  # characters
_OVERHEAD = 128  # memory of an entry besides its bytes
_DIGEST = 16
_MAX_CALLS = 10_000


class AssistantMessage(NamedTuple):
    text: str
    calls: frozenset[str] = frozenset()  # ids


class Blobs:
    """given: those of the request. unsent: text of the other ones. The reader of losses clears them."""

    def __init__(self, given: Mapping[bytes, bytes]) -> None:
        self._given = given
        self._stored: dict[bytes, bytes] = {}
        self._size = 0
        self.unsent = UnsentText(self._history)
        self.losses: list[Loss] = []

    def answer(self, message: agent.KvServerMessage) -> bytes:
        answer = agent.KvClientMessage(id=message.id)
        match message.WhichOneof("message"):
            case "get_blob_args":
                blob_id = message.get_blob_args.blob_id
                data = self._given.get(blob_id, self._stored.get(blob_id))
                if data is None:
                    answer.get_blob_result.error.message = "not found"
                else:
                    answer.get_blob_result.blob_data = data
            case "set_blob_args":
                self._store(message.set_blob_args.blob_id, message.set_blob_args.blob_data)
                answer.set_blob_result.SetInParent()
            case _:
                answer.get_blob_result.error.message = "this client can only get and set blobs"
        return agent.AgentClientMessage(kv_client_message=answer).SerializeToString()

    def _history(self) -> Iterator[AssistantMessage]:
        return filter(None, map(assistant_message, self._given.values()))

    def _store(self, blob_id: bytes, data: bytes) -> None:
        if blob_id in self._given:
            return
        message = assistant_message(data)
        if message is not None and message.text and not self.unsent.add_blob(message.text, message.calls):
            self._lose(blob_id, f"the unsent text grew too large by a message of {len(message.text)} characters")
        size = self._size - _cost(blob_id, self._stored.get(blob_id)) + _cost(blob_id, data)
        if len(data) > MAX_BLOB or size > MAX_STORED:
            self._lose(blob_id, f"a blob of {len(data)} bytes exceeds the memory of a run")
            return
        self._stored[blob_id], self._size = data, size

    def _lose(self, blob_id: bytes, why: str) -> None:
        self.losses.append(Loss("cursor.blob", blob_id[:8].hex(), f"{why}; it was acknowledged and dropped"))


class UnsentText:
    """Text of one run that came as a blob and was not sent. history returns the assistant's earlier messages; called at most once."""

    def __init__(self, history: Callable[[], Iterable[AssistantMessage]] = tuple) -> None:
        self._history = history
        self._known: set[bytes] | None = None  # digests of the history
        self._calls: set[str] = set()  # ids that the client or the history knows
        self._repeated = ""
        self._is_of_run = False  # _repeated is from this run, not from the history
        self._is_blob = False  # the text that is sent now comes from a blob
        self._has_streamed = False
        self._silent_since = 0  # bytes sent when the last step or answer ended
        self._steps: set[bytes] = set()  # digests of the text of each step
        self._uncopied: Counter[bytes] = Counter()  # streamed steps whose blob has not come
        self._step: list[str] = []
        self._run = blake2b(digest_size=_DIGEST)
        self._length = 0  # bytes sent in the run
        self._waiting: deque[tuple[str, bool]] = deque()  # with whether it is new although it was sent before
        self._size = 0  # characters of _waiting

    def __bool__(self) -> bool:
        """There is a blob that was not compared."""
        return bool(self._waiting)

    @property
    def has_step(self) -> bool:
        """Text was sent in the current step."""
        return bool(self._step)

    @property
    def length(self) -> int:
        """Bytes of text that were sent in the run."""
        return self._length

    def add_sent(self, text: str) -> None:
        self._has_streamed = self._has_streamed or not self._is_blob
        data = _bytes(text)
        self._run.update(data)
        self._length += len(data)
        self._step.append(text)

    def add_call(self, call_id: str) -> None:
        """A blob that holds this call is not new."""
        if call_id and len(self._calls) < _MAX_CALLS:
            self._calls.add(call_id)

    def add_blob(self, text: str, calls: frozenset[str] = frozenset()) -> bool:
        """The message of one blob. False: it is too much."""
        is_known = self._is_known(text)
        if is_known and (not calls or not calls.isdisjoint(self._calls)):
            if not self._is_copy(text) and not calls:
                self._repeated = text
                self._is_of_run = _digest_of(text) in self._steps
            return True
        if self._waiting and text.startswith(self._waiting[-1][0]):
            self._size -= len(self._waiting.pop()[0])  # the same message, which has grown
        if self._size + len(text) > MAX_UNSENT:
            return False
        self._waiting.append((text, is_known))
        self._size += len(text)
        return True

    def next_text(self) -> str:
        """Text to send now, one message per call and each a step of its own; "" at the end."""
        self._is_blob = True
        if self._waiting and self._step and (rest := self._rest_of_step()):
            return rest
        while self._waiting:
            text, is_new = self._take(0)
            if is_new:
                return text
            if not self._is_known(text) and (beyond := self._beyond(text, "")):
                return beyond
        is_silent = not self._has_streamed and self._length == self._silent_since
        if is_silent and self._is_of_run and (text := self.take_repetition()):
            return text
        self._is_blob = False
        return ""

    def take_repetition(self) -> str:
        """The last text that came again; "" if there was none."""
        self._is_blob = True
        text, self._repeated = self._repeated, ""
        return text

    def end_step(self) -> None:
        if self._step:
            digest = _digest_of("".join(self._step))
            self._steps.add(digest)
            self._uncopied[digest] += not self._is_blob
            self._step.clear()
        self._is_blob = False

    def end_answer(self) -> None:
        """A step with all its blobs, or an answer, has ended."""
        self._silent_since = self._length
        self._repeated = ""

    def _rest_of_step(self) -> str:
        """The rest of the first blob that continues the streamed text. If none does, all are other wordings of it."""
        step = "".join(self._step)
        for number, (text, _) in enumerate(self._waiting):
            if (rest := self._beyond(text, step)) is not None:
                self._steps.add(_digest_of(self._take(number)[0]))
                self.end_step()
                return rest
        self._waiting.clear()
        self._size = 0
        return ""

    def _is_copy(self, text: str) -> bool:
        digest = _digest_of(text)
        if self._uncopied[digest] <= 0:
            return False
        self._uncopied[digest] -= 1
        return True

    def _take(self, number: int) -> tuple[str, bool]:
        taken = self._waiting[number]
        del self._waiting[number]
        self._size -= len(taken[0])
        return taken

    def _beyond(self, text: str, step: str) -> str | None:
        """What follows the text of the run or the step; None if it begins differently."""
        data = _bytes(text)
        if 0 < self._length <= len(data) and _digest(data[: self._length]) == self._run.digest():
            return data[self._length :].decode("utf-8", "surrogatepass")
        if text.startswith(step):
            return text[len(step) :]
        plain = _without_thoughts(text)
        return plain[len(step) :] if plain.startswith(step) else None

    def _is_known(self, text: str) -> bool:
        if self._known is None:
            history = list(self._history())
            self._known = {_digest_of(message.text) for message in history if message.text}
            self._calls.update(*(message.calls for message in history))
        digest = _digest_of(text)
        return digest in self._steps or digest in self._known


def assistant_message(data: bytes) -> AssistantMessage | None:
    """None if these bytes are anything else."""
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
        return AssistantMessage(content)
    items = content if isinstance(content, list) else []
    calls = (first_line(_member(item, "tool-call", "toolCallId")) for item in items)
    return AssistantMessage("".join(_member(item, "text", "text") for item in items), frozenset(filter(None, calls)))


def _member(item: Json, kind: str, name: str) -> str:
    value = item.get(name) if isinstance(item, dict) and item.get("type") == kind else ""
    return value if isinstance(value, str) else ""


def _cost(blob_id: bytes, data: bytes | None) -> int:
    return 0 if data is None else len(blob_id) + len(data) + _OVERHEAD


def _without_thoughts(text: str) -> str:
    splitter = ThinkTagSplitter()
    return "".join(piece for kind, piece in [*splitter.feed(text), *splitter.close()] if kind == "text")


def _digest_of(text: str) -> bytes:
    return _digest(_bytes(_without_thoughts(text).strip()))


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
