"""Cursor: text of the model's that comes as a blob, and what of it nobody was told yet.

Most text is streamed, and comes a second time as a blob: the message of one step of the model's, or all that it has said in the run.
There are runs in which some or all of it comes as a blob only. A blob is compared with what was told in the present step and in
the whole run; it is told as far as it goes beyond that, and taken for another wording where it says something else than was streamed.
A step ends where the model wants something done, and with each message that was told out of a blob.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b

from .thoughts import Splitter

MOST = 16 * 1024 * 1024  # characters that wait to be told
_DIGEST = 16


class Untold:
    """One run. before gives what the assistant has said before it, and is asked once, if at all."""

    def __init__(self, before: Callable[[], Iterable[str]] = tuple) -> None:
        self._before = before
        self._known: set[bytes] | None = None
        self._steps: set[bytes] = set()  # what was told in each
        self._step: list[str] = []
        self._run = blake2b(digest_size=_DIGEST)
        self._length = 0  # bytes that were told in the run
        self._waiting: deque[str] = deque()
        self._size = 0  # of what waits

    def __bool__(self) -> bool:
        """Whether there is a blob that was not looked at."""
        return bool(self._waiting)

    @property
    def has_spoken(self) -> bool:
        """In the present step."""
        return bool(self._step)

    def told(self, text: str) -> None:
        data = _bytes(text)
        self._run.update(data)
        self._length += len(data)
        self._step.append(text)

    def came(self, text: str) -> bool:
        """The text of one blob. False: it is too much."""
        if self._is_known(text):
            return True
        if self._waiting and text.startswith(self._waiting[-1]):
            self._size -= len(self._waiting.pop())  # the same message, which has grown
        if self._size + len(text) > MOST:
            return False
        self._waiting.append(text)
        self._size += len(text)
        return True

    def next(self) -> str:
        """What is to be told now, message by message; "" where there is no more of it. Each is a step of its own."""
        if self._waiting and self._step and (rest := self._next_of_step()):
            return rest
        while self._waiting:
            text = self._taken(0)
            if not self._is_known(text) and (beyond := self._beyond(text, "")):
                return beyond
        return ""

    def end_step(self) -> None:
        if self._step:
            self._steps.add(_print("".join(self._step)))
            self._step.clear()

    def _next_of_step(self) -> str:
        """Of the first that goes on from what was streamed; where none does, all are other wordings of that."""
        step = "".join(self._step)
        for number, text in enumerate(self._waiting):
            if (rest := self._beyond(text, step)) is not None:
                self._steps.add(_print(self._taken(number)))
                self.end_step()
                return rest
        self._waiting.clear()
        self._size = 0
        return ""

    def _taken(self, number: int) -> str:
        text = self._waiting[number]
        del self._waiting[number]
        self._size -= len(text)
        return text

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
            self._known = {_print(said) for said in self._before()}
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
