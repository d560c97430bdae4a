"""The measurements: every form, every damage, and prose; one tally for each line of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from toolwire.calls.schemas import Schemas

from . import contents, envelopes  # noqa: F401 # they fill the list of damages
from .cases import Call, Case, with_hard_strings
from .damage import DAMAGES, Damage, Speech
from .forms import FORMS, Said, said, surrounded
from .prose import answers
from .reading import Heard, Reader
from .wire import Line, heard_through

PIECE = 4  # letters in a frame of a stream, about a token


@dataclass
class Tally:
    """What became of one kind of answer. Beside the outcomes: uneven, where pieces gave something else than the whole; text, where words
    got lost or more came; checked, the equal ones that needed no repair of arguments; verbatim_*, read on the path of untouched bytes."""

    name: str
    hope: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[str, str, Heard]] = field(default_factory=list)

    def note(self, outcome: str, text: str, heard: Heard) -> None:
        self.counts[outcome] += 1
        if outcome not in ("equal", "checked", "verbatim_equal"):
            self.examples.append((outcome, text, heard))

    @property
    def total(self) -> int:
        return sum(self.counts[outcome] for outcome in ("equal", "broken", "lost", "wrong"))

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)


class Measurement:
    """is_instructed: the model was told of its tools in words. verbatim_every: so often the path of untouched bytes is tried, too; 0 for never."""

    def __init__(self, cases: list[Case], seed: int, verbatim_every: int = 5) -> None:
        self._cases = cases
        self._seed = seed
        self._every = verbatim_every
        self._schemas = Schemas(64 << 20)

    def forms(self, *, is_instructed: bool) -> Iterator[Tally]:
        """Right calls in every form."""
        for form in FORMS.values():
            tally = Tally(form.name, "listed" if form.is_listed else "")
            for index, (case, random) in enumerate(self._drawn(form.name)):
                if (answer := said(form, case.calls, random)) is not None:
                    self._read_form(tally, case, answer, is_instructed)
                    if not is_instructed and self._is_turn(index):
                        self._read_verbatim(tally, case, answer.text)
            yield tally

    def cuts(self, *, is_instructed: bool, is_known: bool) -> Iterator[Tally]:
        """Each form, ended anywhere: what came may be all that was meant, or some, and nothing else. is_known: the server says so."""
        for form in (form for form in FORMS.values() if form.is_listed):
            tally = Tally(form.name)
            for case, random in self._drawn(f"cut {form.name}"):
                if (answer := said(form, case.calls, random)) is not None:
                    text = answer.text[: random.randrange(1, len(answer.text))]
                    reader = self._reader(case, is_instructed)
                    heard = reader.hear(text)
                    tally.note(reader.outcome(heard, case.calls, may_repair=True, is_cut=is_known), text, heard)
            yield tally

    def damages(self, chosen: Iterable[Damage], *, is_instructed: bool) -> Iterator[Tally]:
        for damage in chosen:
            tally = Tally(damage.name, damage.hope)
            for index, (case, random) in enumerate(self._drawn(damage.name)):
                text = damage.apply(Speech(case.calls, case.tools, random))
                if text is not None:
                    answer = surrounded(text, case.calls, random, 0.5, 0.1 * damage.may_follow, 0)
                    self._read_damaged(tally, case, answer.text, is_instructed, is_thorough=index % 10 == 0)
            yield tally

    def prose(self, *, is_instructed: bool, count: int) -> list[Tally]:
        """Answers that call nothing; any call, and any word that is missing, is wrong."""
        tallies: dict[str, Tally] = {}
        for index, (case, random) in enumerate(self._drawn("prose")):
            for group, text in answers(case, random, count):
                tally = tallies.setdefault(group, Tally(group))
                self._read_prose(tally, case, text, is_instructed, is_thorough=index % 3 == 0)
                if not is_instructed and self._is_turn(index):
                    self._read_verbatim(tally, case, text, is_prose=True)
        return [tallies[name] for name in sorted(tallies)]

    def _drawn(self, name: str) -> Iterator[tuple[Case, Random]]:
        for case in self._cases:
            random = Random(f"{self._seed}/{name}/{case.name}")
            yield with_hard_strings(case, random), random

    def _read_form(self, tally: Tally, case: Case, answer: Said, is_instructed: bool) -> None:
        reader = self._reader(case, is_instructed)
        heard = reader.hear(answer.text)
        outcome = reader.outcome(heard, case.calls, may_repair=False)
        tally.note(outcome, answer.text, heard)
        if reader.hear(answer.text, 1) != heard:
            tally.note("uneven", answer.text, heard)
        if outcome == "equal" and "".join(heard.words.split()) != "".join(answer.words.split()):
            tally.note("text", answer.text, heard)

    def _read_damaged(self, tally: Tally, case: Case, text: str, is_instructed: bool, is_thorough: bool) -> None:
        reader = self._reader(case, is_instructed)
        heard = reader.hear(text)
        outcome = reader.outcome(heard, case.calls, may_repair=True)
        tally.note(outcome, text, heard)
        if outcome == "equal" and reader.outcome(heard, case.calls, may_repair=False) == "equal":
            tally.note("checked", text, heard)
        if is_thorough and reader.hear(text, 1) != heard:
            tally.note("uneven", text, heard)

    def _read_prose(self, tally: Tally, case: Case, text: str, is_instructed: bool, is_thorough: bool) -> None:
        reader = self._reader(case, is_instructed)
        heard = reader.hear(text)
        tally.note(_prose_outcome(reader, heard), text, heard)
        if not heard.calls and heard.words != text:
            tally.note("text", text, heard)
        if is_thorough and reader.hear(text, 1) != heard:
            tally.note("uneven", text, heard)

    def _read_verbatim(self, tally: Tally, case: Case, text: str, is_prose: bool = False) -> None:
        line = Line(case.tools, self._schemas, is_tap=True, listens=True)
        heard = heard_through(line, text, PIECE)
        reader = self._reader(case, False)
        meant: tuple[Call, ...] = () if is_prose else case.calls
        outcome = _prose_outcome(reader, heard) if is_prose else reader.outcome(heard, meant, may_repair=False)
        tally.note(f"verbatim_{outcome}", text, heard)

    def _is_turn(self, index: int) -> bool:
        return bool(self._every) and index % self._every == 0

    def _reader(self, case: Case, is_instructed: bool) -> Reader:
        return Reader(case.tools, self._schemas, is_instructed=is_instructed)


def _prose_outcome(reader: Reader, heard: Heard) -> str:
    return reader.outcome(heard, (), may_repair=True)


def every_damage() -> list[Damage]:
    return list(DAMAGES.values())
