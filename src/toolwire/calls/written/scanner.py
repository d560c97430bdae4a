"""Finds the calls that a model writes into its text, in one pass, wherever the text is cut into pieces.

Outside of blocks every letter is plain text, and is returned at once unless it may begin an opener. Openers inside code and thinking do
not count. A block of its own is a call: at the start of a line, after another block, or anywhere if no prose contains such a token. A block
inside a line may be part of a sentence: it is a call only if it is complete, its tool known and its arguments valid, and if it follows the
end of a sentence or ends its line; until that is known it is held. A call that must be the whole text is held to the end of the text.

What turns out to be no call is plain text, and is read again from after its opener, because something else may begin there. How much is
read twice is bounded by what was read once, so hostile text costs at most a constant times its length. Texts are cut into slices before
they are read: a block returns what follows it, and slices keep that short.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from .formats import GRAMMARS, ONLY_INSTRUCTED
from .formats.base import BlockRead, CallBroken, CallClosed, Imagined, Piece, PlainText, ToolLookup
from .formats.grammar import Grammar
from .formats.hermes.tagged import STRAY_TAG
from .formats.openers import FoundOpener, Openers, Trial, Until
from .formats.text_position import TextPosition

SLICE = 1024
FIRST = 64  # letters after an opener that mostly decide whether it is one
FREE = 1 << 15  # letters that may be read again in any case,
TIMES = 4  # and how often all others, on average
_MOST_SEEN = 256
_MOST_STRAYS = 4
_MOST_REFUSED = 500  # blocks without a call: a text with more of them only mentions blocks
_STRAYS = ">}]"
_TICKS = re.compile(r"`+|~+")
_ON_LINE = re.compile(r"[^\S\n]*")
_BLANKS = re.compile(r"\s*")


class _Waiting(Struct):
    """A call that counts if nothing else follows. gap: the blanks behind it; written: those, and strays that are words if it is none."""

    until: Until
    span: str
    pieces: list[Piece]
    gap: list[str] = []
    written: list[str] = []


class CallScanner:
    """Scans one text part. The pieces are in the order of the text; adjacent ones may be joined."""

    def __init__(self, known: ToolLookup, grammars: Sequence[Grammar] = GRAMMARS) -> None:
        self._known = known
        self._openers = (
            _openers(known.is_instructed) if grammars is GRAMMARS else Openers(_fitting(grammars, known.is_instructed))
        )
        self._search = self._openers.suspicious.search
        self._may_open = self._openers.opening.search
        self._lines = TextPosition()
        self._seen: list[str] = []  # text whose code marks were not read yet
        self._is_plain = False  # nothing is open or held: words can pass as they are
        self._is_start = True
        self._is_behind = False  # only blanks since the last block
        self._is_imagined = False
        self._has_calls = False
        self._strays = 0  # so many stray letters directly behind a block are not words
        self._held = ""
        self._queue: deque[str] = deque()
        self._trial: Trial | None = None
        self._waiting: _Waiting | None = None
        self._pieces: list[Piece] = []
        self._decided = 0
        self._again = 0
        self._refused = 0

    @property
    def work(self) -> int:
        """How many letters were read, those that were read again included."""
        return self._decided + self._again

    @property
    def held(self) -> int:
        """How many letters wait outside of blocks."""
        return len(self._held)

    def passes(self, text: str) -> bool:
        """Whether this is plain text, as nearly every piece is. If so it is noted here, and must not be fed."""
        if not self._is_plain or self._may_open(text) is not None:
            return False
        self._seen.append(text)
        if len(self._seen) > _MOST_SEEN:
            self._look_back()
        return True

    def feed(self, text: str) -> list[Piece]:
        if self.passes(text):
            return [PlainText(text)]
        self._look_back()
        self._put_back(text)
        self._go_on(is_last=False)
        return self._given()

    def close(self) -> list[Piece]:
        """The end of the text: returns everything that is held."""
        self._look_back()
        self._go_on(is_last=True)
        while self._trial is not None or self._waiting is not None:
            if self._trial is not None:
                self._take(self._trial, self._trial.close())
            else:
                self._stop_waiting(is_call=True)
            self._go_on(is_last=True)
        return self._given()

    def _given(self) -> list[Piece]:
        pieces, self._pieces = self._pieces, []
        is_open = self._trial is not None or self._waiting is not None or self._is_imagined
        self._is_plain = not (is_open or self._held or self._is_start or self._is_behind)
        return pieces

    def _look_back(self) -> None:
        """Read the code marks of text that passed: where code begins or ends matters only to what follows."""
        if not self._seen:
            return
        text, position = "".join(self._seen), 0
        self._seen.clear()
        for found in _TICKS.finditer(text):
            self._pass(text[position : found.start()])
            position = self._over_ticks(text, found.start())
        self._pass(text[position:])

    def _put_back(self, text: str) -> None:
        """To be read next, in slices."""
        if len(text) <= SLICE:
            if text:
                self._queue.appendleft(text)
            return
        self._queue.extendleft(
            text[start : start + SLICE] for start in range((len(text) - 1) // SLICE * SLICE, -1, -SLICE)
        )

    def _go_on(self, *, is_last: bool) -> None:
        while self._queue or (is_last and self._held):
            text = self._held + (self._queue.popleft() if self._queue else "")
            self._held = ""
            self._step(text, is_last=is_last and not self._queue)

    def _step(self, text: str, *, is_last: bool) -> None:
        if self._is_imagined:
            self._pieces.append(Imagined(text))
        elif self._trial is not None:
            self._feed_block(self._trial, text)
        elif self._waiting is not None:
            self._wait(self._waiting, text, is_last=is_last)
        elif self._is_start:
            self._begin(text, is_last=is_last)
        else:
            self._scan(text, is_last=is_last)

    # Words.

    def _pass(self, text: str) -> None:
        """Takes note of words."""
        if not text:
            return
        self._decided += len(text)
        self._lines.plain(text)
        if self._is_behind and not text.isspace():
            self._is_behind = False

    def _say(self, text: str) -> None:
        if text:
            self._pieces.append(PlainText(text))
            self._pass(text)

    def _begin(self, text: str, *, is_last: bool) -> None:
        """The first letters: here a call may begin that has no opener of its own, if it is all there is."""
        words = text.lstrip()
        self._say(text[: len(text) - len(words)])
        if not words:
            return
        if self._openers.may_start(words) and not is_last:
            self._held = words
            return
        self._is_start = False
        choices = self._openers.starts(words)
        if choices:
            self._put_back(words[len(choices[0][0]) :])
            self._try(FoundOpener(choices[0][0], "start", choices))
        else:
            self._scan(words, is_last=is_last)

    def _scan(self, text: str, *, is_last: bool) -> None:
        """Words up to the next opener that counts."""
        text = self._without_strays(text)
        position = 0
        while found := self._search(text, position):
            start = found.start()
            self._pass(text[position:start])
            if text[start] in "`~":
                position = self._over_ticks(text, start)
            elif self._lines.is_code:
                position = self._over(text, start, 1)
            elif not is_last and self._openers.may_become(text, start):
                self._held = text[start:]
                break
            elif (opening := self._openers.at(text, start)) is None:
                position = self._over(text, start, 1)
            elif self._enter(opening):
                self._put_back(text[start if self._is_imagined else start + len(opening.text) :])
                break
            else:
                may_think = self._lines.is_blank or self._lines.ends_sentence
                position = self._over(text, start, len(opening.text))
                self._think(opening, may_think)
        else:
            self._pass(text[position:])
            start = len(text)
        if start:
            self._pieces.append(PlainText(text[:start]))

    def _over(self, text: str, start: int, count: int) -> int:
        self._pass(text[start : start + count])
        return start + count

    def _over_ticks(self, text: str, start: int) -> int:
        found = _TICKS.match(text, start)
        end = found.end() if found else start
        self._decided += end - start
        self._is_behind = False
        self._lines.ticks(text[start], end - start)
        return end

    def _without_strays(self, text: str) -> str:
        if self._strays and text:
            count = min(len(text) - len(text.lstrip(_STRAYS)), self._strays)
            self._strays = self._strays - count if count == len(text) else 0
            return text[count:]
        return text

    # Openers.

    def _enter(self, opening: FoundOpener) -> bool:
        """Whether something begins here that is not words."""
        if self._lines.thought:
            return False
        match opening.kind:
            case "block":
                is_entered = self._again <= FREE + TIMES * self._decided and self._refused < _MOST_REFUSED
            case "stray":
                is_entered = self._is_behind
            case "result":
                is_entered = self._is_imagined = self._known.is_instructed and self._has_calls and self._lines.is_blank
                return is_entered
            case _:
                return False
        if is_entered:
            self._try(opening)
        return is_entered

    def _think(self, opening: FoundOpener, may_think: bool) -> None:
        """Behind words that may begin or end a thought."""
        tag = opening.text.strip("</>").lower()
        if opening.kind == "unthink" and self._lines.thought == tag:
            self._lines.thought = ""
            self._lines.behind_block()
        elif opening.kind == "think" and not self._lines.thought and may_think:
            self._lines.thought = tag

    def _try(self, opening: FoundOpener) -> None:
        self._trial = Trial(opening, self._known, self._until)

    def _until(self, grammar: Grammar) -> Until:
        if grammar.place == "start":
            return "end"
        if grammar is STRAY_TAG or grammar.place == "anywhere":
            return "nothing"
        if self._waiting is not None:
            return "valid"
        if self._lines.is_blank:
            return "nothing"
        return "valid" if self._lines.ends_sentence else "line"

    # Blocks.

    def _feed_block(self, trial: Trial, text: str) -> None:
        if trial.size < FIRST < len(text):
            self._put_back(text[FIRST:])
            text = text[:FIRST]
        self._take(trial, trial.feed(text))

    def _take(self, trial: Trial, read: BlockRead) -> None:
        if read.status == "more":
            if read.pieces:
                self._stop_waiting(is_call=True)
                self._give(read.pieces)
            return
        self._trial = None
        if read.status == "done":
            self._end(trial, read)
        else:
            self._refuse(trial, read)

    def _end(self, trial: Trial, read: BlockRead) -> None:
        self._decided += len(trial.opening.text) + trial.size - len(read.rest)
        self._put_back(read.rest)
        if trial.until in ("line", "end"):
            span = trial.span.removesuffix(read.rest)
            self._waiting = _Waiting(until=trial.until, span=span, pieces=read.pieces)
            self._strays = _MOST_STRAYS
            return
        if self._waiting is not None and trial.opening.kind == "stray":
            self._waiting.written.append(trial.span.removesuffix(read.rest))
            self._strays = _MOST_STRAYS
            return
        self._stop_waiting(is_call=True)
        self._give(read.pieces)
        self._close_block()

    def _refuse(self, trial: Trial, read: BlockRead) -> None:
        """Words after all: another opener may begin inside."""
        self._refused += 1
        if trial.size > FIRST:
            self._again += trial.size - len(read.rest)
        if trial.until == "end":
            self._put_back(trial.span)
            return
        written = trial.opening.text
        self._put_back(trial.span[len(written) :])
        self._stop_waiting(is_call=False)
        self._say(written)

    def _give(self, pieces: list[Piece]) -> None:
        self._pieces += pieces
        self._has_calls = self._has_calls or any(type(piece) in (CallClosed, CallBroken) for piece in pieces)

    def _close_block(self) -> None:
        self._lines.behind_block()
        self._is_behind = True
        self._strays = _MOST_STRAYS

    # Calls that depend on what follows.

    def _wait(self, waiting: _Waiting, text: str, *, is_last: bool) -> None:
        kept = self._without_strays(text)
        found = (_ON_LINE if waiting.until == "line" else _BLANKS).match(kept)
        blanks = found.group() if found else ""
        rest = kept[len(blanks) :]
        waiting.gap.append(blanks)
        waiting.written.append(text[: len(text) - len(rest)])
        if not rest:
            return
        if waiting.until == "line" and rest[0] != "\n":
            if not is_last and self._openers.may_become(rest, 0):
                self._held = rest
                return
            opening = self._openers.at(rest, 0)
            if opening is not None and opening.kind in ("block", "stray"):
                self._put_back(rest[len(opening.text) :])
                self._try(opening)
                return
        self._put_back(rest)
        self._stop_waiting(is_call=rest[0] == "\n")

    def _stop_waiting(self, *, is_call: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        written = waiting.span + "".join(waiting.written)
        if is_call:
            self._give(waiting.pieces)
            self._close_block()
            self._say("".join(waiting.gap))
        elif waiting.until == "line":
            self._say(written)
        else:
            self._again += len(written)
            self._put_back(written)


def _fitting(grammars: Sequence[Grammar], is_instructed: bool) -> list[Grammar]:
    return [grammar for grammar in grammars if is_instructed or all(grammar is not other for other in ONLY_INSTRUCTED)]


@cache
def _openers(is_instructed: bool) -> Openers:
    return Openers(_fitting(GRAMMARS, is_instructed))
