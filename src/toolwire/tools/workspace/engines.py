"""Who looks for a pattern in open files: ripgrep, or our own program in its place."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from .limits import Budget
from .messages import Refused
from .programs import environment, program, run

_OWN = Path(__file__).with_name("line_search.py")
_DESCRIPTORS = "/proc/self/fd/" if sys.platform == "linux" else "/dev/fd/"
_LINE = re.compile(rb"(?:[^\0]*/)?(\d+)\0(\d+)(?:([:-])(.*)|\r?)", re.DOTALL)
_LONGEST = 8192  # bytes of one line that are kept
_ERROR = 300

# Nothing but the pattern decides what matches: no configuration, no ignoring, no guesses about what is text.
_RIPGREP = (
    "--no-config",
    "-j1",
    "--line-number",
    "--no-heading",
    "--with-filename",
    "--null",
    "--color=never",
    "--text",
    "--crlf",
    "--no-mmap",
    "--no-context-separator",
)


class Query(Struct, frozen=True, kw_only=True):
    """most: matching lines of one file, and enough of all files together; 0 for no bound. counting: how many, not which."""

    pattern: str
    ignore_case: bool = False
    context: int = 0
    most: int = 0
    enough: int = 0
    counting: bool = False


class Hit(Struct, frozen=True):
    """index says which of the files; number is that of the line, or how many lines match."""

    index: int
    number: int
    is_match: bool
    text: str


def search(root: str, query: Query, files: Sequence[int], budget: Budget) -> list[Hit]:
    """The lines that match, and those around them, in the order of the files. A pattern that ripgrep cannot read is tried by us."""
    if (ripgrep := program("rg", root)) is not None:
        output = _Output(files, query.enough)
        places = (f"{_DESCRIPTORS}{file}" for file in files)
        if not _run(root, [ripgrep, *_in_ripgrep(query), *places], output, files, budget):
            return output.hits
    output = _Output(files, query.enough)
    own = [sys.executable, "-I", "-S", str(_OWN), *_in_own(query), *map(str, files)]
    if fault := _run(root, own, output, files, budget):
        raise Refused(
            f"the pattern is no regular expression: {fault}. Write a backslash before what is meant literally."
        )
    return output.hits


def _in_ripgrep(query: Query) -> Iterator[str]:
    yield from _RIPGREP
    if query.ignore_case:
        yield "--ignore-case"
    if query.counting:
        yield "--count"
    if query.context:
        yield f"--context={query.context}"
    if query.most:
        yield f"--max-count={query.most}"
    yield from ("-e", query.pattern, "--")


def _in_own(query: Query) -> tuple[str, ...]:
    return query.pattern, str(int(query.ignore_case)), str(query.context), str(query.most), str(int(query.counting))


def _run(root: str, arguments: list[str], output: _Output, files: Sequence[int], budget: Budget) -> str:
    """What the engine says against the pattern; "" if nothing."""
    variables = environment()
    with tempfile.TemporaryFile() as errors:
        ended = run(
            arguments, budget, output.take, folder=root, variables=variables, files=files, errors=errors.fileno()
        )
        if ended.code != 2:
            return ""
        errors.seek(0)
        said = errors.read(4096).decode("utf-8", "replace").split()
        return " ".join(said)[:_ERROR] or "it was refused"


class _Output:
    """What an engine prints, taken apart as it comes; of a long line only the beginning is kept."""

    def __init__(self, files: Sequence[int], enough: int) -> None:
        self._index = {str(file).encode(): index for index, file in enumerate(files)}
        self._enough = enough
        self._matches = 0
        self._tail = b""
        self.hits = list[Hit]()

    def take(self, piece: bytes) -> bool:
        *lines, tail = piece.split(b"\n")
        for line in lines:
            self._add((self._tail + line[:_LONGEST])[:_LONGEST])
            self._tail = b""
        self._tail = (self._tail + tail[:_LONGEST])[:_LONGEST]
        return not self._enough or self._matches < self._enough

    def _add(self, line: bytes) -> None:
        found = _LINE.fullmatch(line)
        if found is None or (index := self._index.get(found[1])) is None:
            return
        is_match = found[3] != b"-"
        self._matches += is_match
        text = (found[4] or b"").rstrip(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")
        self.hits.append(Hit(index, int(found[2]), is_match, text.replace("\0", "\ufffd")))
