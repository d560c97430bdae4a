"""Stop sequences for back ends that have none: the text of an answer is cut where the first of them is complete.

An Aho-Corasick automaton looks for all sequences at once: each letter is read once, however the text is cut into pieces. It withholds
exactly the longest end of the text that may still become a sequence. Of sequences that end at the same letter the longest counts.
"""

from __future__ import annotations

import re
from collections import deque
from typing import assert_never

from msgspec.structs import replace

from ..errors import BadRequest
from ..events import Event, Failed, Finished, Noted, PartDelta, PartEnded, PartStarted, Started, content_of
from ..types import Choice, Json, Part, Reasoning, Refusal, Text, ToolCall, Usage
from ..wire.exact_json import object_of
from .parts import PartIndexes

_LONGEST = 100_000  # letters of all sequences together: the automaton has a state for each


class StopFilter:
    """Filters one answer. Once is_over, the rest of the back end's answer is not needed, and it can be interrupted."""

    def __init__(self, stop: tuple[str, ...], choices: int = 1) -> None:
        self._automaton = Automaton(tuple(filter(None, stop)))
        self._choices = choices
        self._indexes = PartIndexes()
        self._parts: dict[int, _Open] = {}  # open parts, by the back end's index
        self._stopped: dict[int, str] = {}  # choice -> the sequence that ended it
        self._usage: Usage | None = None
        self.is_over = False

    @property
    def has_stopped(self) -> bool:
        """Whether a sequence was found."""
        return bool(self._stopped)

    def send(self, events: list[Event]) -> list[Event]:
        kept: list[Event] = []
        for event in events:
            if self.is_over:
                break
            kept += self._event(event)
        return kept

    def _event(self, event: Event) -> list[Event]:
        match event:
            case Started():
                self._usage = event.usage
                return [event]
            case PartStarted():
                return self._started(event)
            case PartDelta():
                open_part = self._parts.get(event.index)
                return [] if open_part is None else self._grown(event.index, open_part, event)
            case PartEnded():
                return self._ended(event)
            case Noted():
                return self._noted(event)
            case Finished():
                self.is_over = True
                return [replace(event, choices=tuple(map(self._choice, event.choices)))]
            case Failed():
                self.is_over = True
                return [event]
            case _:
                assert_never(event)

    def _started(self, event: PartStarted) -> list[Event]:
        if event.choice in self._stopped:
            return []
        search = SequenceSearch(self._automaton) if isinstance(event.part, Text) else None
        started = self._indexes.open(event)
        self._parts[event.index] = _Open(started.index, event.part, event.choice, search)
        return [started]

    def _grown(self, index: int, part: _Open, event: PartDelta) -> list[Event]:
        text = event.text if part.search is None else part.search.feed(event.text)
        events = part.grow(text, event.logprobs)
        if part.search is None or part.search.found is None:
            return events
        return events + self._stop(part.choice, part.search.found)

    def _ended(self, event: PartEnded) -> list[Event]:
        part = self._parts.pop(event.index, None)
        if part is None:
            return []
        events: list[Event] = [] if part.search is None else part.grow(part.search.close(), None)
        return [*events, *self._indexes.forward(event)]

    def _stop(self, choice: int, sequence: str) -> list[Event]:
        """Everything of this choice ends here, and with the last choice the answer."""
        self._stopped[choice] = sequence
        events: list[Event] = []
        for index, part in list(self._parts.items()):
            if part.choice == choice:
                events.append(PartEnded(index=part.index, part=part.completed(), choice=choice))
                self._indexes.hide(index)
                del self._parts[index]
        if len(self._stopped) < self._choices:
            return events
        self.is_over = True
        ends = tuple(self._choice(Choice(reason="stop", index=index)) for index in sorted(self._stopped))
        return [*events, Finished(choices=ends, usage=self._usage)]

    def _noted(self, event: Noted) -> list[Event]:
        if isinstance(event.note, Usage):
            self._usage = event.note
        return self._indexes.forward(event)

    def _choice(self, choice: Choice) -> Choice:
        sequence = self._stopped.get(choice.index)
        if sequence is None:
            return choice
        return Choice(reason="stop", raw_reason="stop_sequence", index=choice.index, stop_sequence=sequence)


class Automaton:
    """The trie of all sequences. States are numbers, 0 the root; a state's depth is how much of a sequence it has seen."""

    def __init__(self, sequences: tuple[str, ...]) -> None:
        if sum(map(len, sequences)) > _LONGEST:
            raise BadRequest(f"the stop sequences have more than {_LONGEST} letters together.", where="stop")
        self.steps: list[dict[str, int]] = [{}]
        self.depths = [0]
        self.back = [0]  # the longest other state that the text also is in
        self.found: list[str | None] = [None]  # the longest sequence that is complete here
        for sequence in sequences:
            self._add(sequence)
        self._link()
        heads = "".join(map(re.escape, sorted(self.steps[0])))
        self.head = re.compile(f"[{heads}]") if heads else None

    def _add(self, sequence: str) -> None:
        state = 0
        for letter in sequence:
            following = self.steps[state].get(letter)
            if following is None:
                following = self.steps[state][letter] = len(self.steps)
                self.steps.append({})
                self.depths.append(self.depths[state] + 1)
                self.back.append(0)
                self.found.append(None)
            state = following
        self.found[state] = sequence

    def _link(self) -> None:
        waiting = deque(self.steps[0].values())
        while waiting:
            state = waiting.popleft()
            for letter, following in self.steps[state].items():
                self.back[following] = self.step(self.back[state], letter)
                if self.found[following] is None:
                    self.found[following] = self.found[self.back[following]]
                waiting.append(following)

    def step(self, state: int, letter: str) -> int:
        while letter not in self.steps[state]:
            if not state:
                return 0
            state = self.back[state]
        return self.steps[state][letter]


class SequenceSearch:
    """Searches one text. feed returns the text that precedes any sequence; found is the sequence that ended it."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._state = 0
        self._held: deque[str] = deque()
        self._size = 0  # letters that are held
        self._gone = 0  # letters of the first piece that are not held any more
        self.found: str | None = None

    def feed(self, text: str) -> str:
        automaton, place, end = self._automaton, 0, len(text)
        while place < end and self.found is None:
            if not self._state and (place := self._next(text, place)) == end:
                break
            self._state = automaton.step(self._state, text[place])
            place += 1
            self.found = automaton.found[self._state]
        if place:
            self._held.append(text[:place])
        self._size += place
        kept = len(self.found) if self.found is not None else automaton.depths[self._state]
        return self._released(self._size - kept)

    def close(self) -> str:
        """Nothing follows: what was held back is text."""
        return self._released(self._size)

    def _released(self, count: int) -> str:
        """The first `count` withheld letters; each is copied once."""
        self._size -= count
        pieces: list[str] = []
        while count:
            piece = self._held[0][self._gone : self._gone + count]
            self._gone += len(piece)
            count -= len(piece)
            pieces.append(piece)
            if self._gone == len(self._held[0]):
                self._held.popleft()
                self._gone = 0
        return "".join(pieces)

    def _next(self, text: str, place: int) -> int:
        """The next position where a sequence may begin."""
        head = self._automaton.head
        found = head.search(text, place) if head is not None else None
        return len(text) if found is None else found.start()


class _Open:
    """A part that has begun, under the index that the client sees."""

    __slots__ = ("choice", "index", "logprobs", "part", "pieces", "search", "waiting")

    def __init__(self, index: int, part: Part, choice: int, search: SequenceSearch | None) -> None:
        self.index = index
        self.part = part
        self.choice = choice
        self.search = search
        self.pieces: list[str] = [content_of(part)]
        self.logprobs: list[Json] = []
        self.waiting: tuple[Json, ...] = ()  # logprobs of letters that are held back

    def grow(self, text: str, logprobs: tuple[Json, ...] | None) -> list[Event]:
        self.waiting += logprobs or ()
        if not text:
            return []
        given, self.waiting = self.waiting or None, ()
        self.pieces.append(text)
        self.logprobs += given or ()
        return [PartDelta(self.index, text, given)]

    def completed(self) -> Part:
        content = "".join(self.pieces)
        match self.part:
            case Text():
                return replace(self.part, text=content, logprobs=tuple(self.logprobs) or None)
            case Refusal() | Reasoning():
                return replace(self.part, text=content)
            case ToolCall():
                return replace(self.part, raw=content, args=object_of(content))
            case _:
                return self.part
