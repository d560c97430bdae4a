"""A grammar: the openers of one form of calls, and the script that reads what follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .base import BlockRead, CallClosed, CallGrew, CallOpened, Piece, ToolLookup
from .lexer import NoCall, Steps, Tape, UnreadableCall

Script: TypeAlias = Callable[[Tape], Steps[None]]


class Grammar(Struct, frozen=True, eq=False):
    """place: where its openers count. start: only as the first thing of the text, and the call must be all of it; line: at the start of
    a line, or after another block; anywhere: the opener is a token that no prose contains.

    repair: a label for forms that no prompt requests, which count only if their calls are valid. reads_opener: the opener is the start of
    what the script reads.
    """

    name: str
    openers: tuple[str, ...]
    script: Script
    place: Literal["start", "line", "anywhere"] = "anywhere"
    repair: str = ""
    reads_opener: bool = False

    def begin(self, opener: str, known: ToolLookup, *, is_exact: bool = False) -> Block:
        """is_exact: the block may be part of a sentence, so it must have an end, and its calls must be valid."""
        is_validated = is_exact or bool(self.repair)
        tape = Tape("" if self.reads_opener else opener, known, is_exact=is_validated, must_close=is_exact)
        if self.reads_opener:
            tape.add(opener)
        return Block(self.script, tape, self.repair)


class Block:
    """One span, from after its opener. If the tape is exact, nothing is returned before the end, and then only valid calls."""

    def __init__(self, script: Script, tape: Tape, repair: str = "") -> None:
        self._tape = tape
        self._steps = script(tape)
        self._repairs = (repair,) if repair else ()
        self._calls: list[CallClosed] = []

    def feed(self, text: str) -> BlockRead:
        self._tape.add(text)
        return self._advance()

    def close(self) -> BlockRead:
        """The text has ended: done or none."""
        self._tape.end()
        return self._advance()

    def _advance(self) -> BlockRead:
        read = self._step()
        return self._validate(read) if self._tape.is_exact else read

    def _step(self) -> BlockRead:
        tape = self._tape
        try:
            next(self._steps)
        except StopIteration:
            return BlockRead(status="done", pieces=self._found(), rest=tape.rest)
        except NoCall:
            if tape.name and not tape.is_exact:
                return self._broken(UnreadableCall("it does not continue as a call does"))
            return self._without()
        except UnreadableCall as fault:
            return self._broken(fault) if tape.name or tape.is_instructed else self._without()
        return BlockRead(status="more", pieces=self._found())

    def _found(self) -> list[Piece]:
        pieces, self._tape.pieces = self._tape.pieces, []
        return pieces

    def _broken(self, fault: UnreadableCall) -> BlockRead:
        self._tape.broken(fault.why, fault.name, fault.raw)
        return BlockRead(status="done", pieces=self._found(), rest=self._tape.rest)

    def _without(self) -> BlockRead:
        """The calls found so far; what was read since then is text."""
        tape = self._tape
        if not tape.has_found:
            return BlockRead(status="none", rest=tape.rest)
        return BlockRead(status="done", pieces=self._found(), rest=tape.span + tape.rest)

    def _validate(self, read: BlockRead) -> BlockRead:
        self._calls += [piece for piece in read.pieces if type(piece) is CallClosed]
        if any(type(piece) not in (CallClosed, CallOpened, CallGrew) for piece in read.pieces) or read.status == "none":
            return BlockRead(status="none", rest=read.rest)
        if read.status == "more":
            return BlockRead(status="more")
        if not self._calls or not all(self._tape.known.fits(call.name, call.raw) for call in self._calls):
            return BlockRead(status="none", rest=read.rest)
        calls = [replace(one, repairs=tuple(dict.fromkeys((*one.repairs, *self._repairs)))) for one in self._calls]
        return BlockRead(status="done", pieces=[*calls], rest=read.rest)
