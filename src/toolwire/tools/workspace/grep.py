"""Search files for a regular expression.

Our own walk finds and opens the files. The search engine, ripgrep or `line_search.py` where there is none, gets descriptors and never
paths, so that it cannot be led out of the root, and both engines return the same lines.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from ...errors import quote
from .confinement import Scope, open_file
from .folders import SearchLimit, Walk
from .limits import Budget
from .messages import ToolRefused, os_errors_refused
from .patterns import Patterns
from .programs import find_program, program_environment, run

if sys.platform != "win32":
    import resource

Mode: TypeAlias = Literal["lines", "files", "count"]

_MAX_CONTEXT = 20
_MAX_PATTERN = 2000
_BINARY_HEAD = 8192
_BATCH = 256  # files that are open at once
_LINE_SEARCH = Path(__file__).with_name("line_search.py")
_DESCRIPTORS = "/proc/self/fd/" if sys.platform == "linux" else "/dev/fd/"
_OUTPUT_LINE = re.compile(rb"(?:[^\0]*/)?(\d+)\0(\d+)(?:([:-])(.*)|\r?)", re.DOTALL)
_MAX_LINE = 8192  # bytes; the rest of a line is dropped
_MAX_ERROR = 300

# Only the pattern decides what matches: no configuration, no ignore files, no detection of binary files.
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


class Search(Struct, frozen=True, kw_only=True):
    """globs: patterns that a file must all match. most: matches (mode lines) or files, 0 for what the limits allow."""

    pattern: str
    path: str = "."
    globs: tuple[str, ...] = ()
    mode: Mode = "lines"
    ignore_case: bool = False
    context: int = 0
    with_ignored: bool = False
    most: int = 0


class Hit(Struct, frozen=True):
    """index is that of the file; number that of the line, or how many lines match."""

    index: int
    number: int
    is_match: bool
    text: str


class Matches(Struct, frozen=True, kw_only=True):
    """Hits by path, in the order of the walk. is_cut: there are more. too_large: how many files were not searched because of their size."""

    files: dict[str, list[Hit]]
    is_cut: bool
    stopped: SearchLimit
    too_large: int


class Query(Struct, frozen=True, kw_only=True):
    """What an engine searches for. most: matching lines of one file; enough: of all files together; 0 for no bound."""

    pattern: str
    ignore_case: bool = False
    context: int = 0
    most: int = 0
    enough: int = 0
    counting: bool = False


def grep(scope: Scope, search: Search) -> Matches:
    _check_pattern(search.pattern)
    is_lines = search.mode == "lines"
    most = search.most or (scope.limits.matches if is_lines else scope.limits.entries)
    query = Query(
        pattern=search.pattern,
        ignore_case=search.ignore_case,
        context=min(max(search.context, 0), _MAX_CONTEXT) if is_lines else 0,
        most=most + 1 if is_lines else int(search.mode == "files"),
        enough=most + 1 if is_lines else 0,
        counting=search.mode == "count",
    )
    candidates = _Candidates(scope, search)
    files, count = dict[str, list[Hit]](), 0
    with os_errors_refused(search.path):
        for batch in candidates.batches():
            for hit in find_lines(scope.root.path, query, [file for file, _ in batch], scope.budget):
                count += hit.is_match
                if count > most:
                    break
                files.setdefault(batch[hit.index][1], []).append(hit)
            if count > most or scope.budget.is_over:
                break
    scope.budget.check()
    stopped = candidates.walk.stopped or ("seconds" if scope.budget.is_over else "")
    return Matches(files=files, is_cut=count > most, stopped=stopped, too_large=candidates.too_large)


def find_lines(root: str, query: Query, files: Sequence[int], budget: Budget) -> list[Hit]:
    """Matching lines and their context, in the order of the files. A pattern that ripgrep rejects goes to line_search.py."""
    if (ripgrep := find_program("rg", root)) is not None:
        output = _EngineOutput(files, query.enough)
        paths = (f"{_DESCRIPTORS}{file}" for file in files)
        if not _run_engine(root, [ripgrep, *_ripgrep_options(query), *paths], output, files, budget):
            return output.hits
    output = _EngineOutput(files, query.enough)
    options = (query.ignore_case, query.context, query.most, query.counting)
    own = [sys.executable, "-I", "-S", str(_LINE_SEARCH), query.pattern, *(str(int(option)) for option in options)]
    if error := _run_engine(root, [*own, *map(str, files)], output, files, budget):
        raise ToolRefused(
            f"the pattern is no regular expression: {error}. Write a backslash before what is meant literally."
        )
    return output.hits


def _check_pattern(pattern: str) -> None:
    if not pattern:
        raise ToolRefused("the pattern is empty, so every line matches; write what is looked for.")
    if len(pattern) > _MAX_PATTERN:
        raise ToolRefused(
            f"the pattern has {len(pattern):,} characters, expected at most {_MAX_PATTERN:,}; use a shorter one."
        )
    if "\n" in pattern or "\0" in pattern:
        raise ToolRefused(
            "the pattern holds a line break or NUL, but lines are searched one by one; look for a part in one line."
        )
    if any("\ud800" <= letter <= "\udfff" for letter in pattern):
        raise ToolRefused("the pattern holds half a character (a lone surrogate); write it in full.")


class _Candidates:
    """The text files of a search, opened, with their paths."""

    def __init__(self, scope: Scope, search: Search) -> None:
        self._scope = scope
        self._path = search.path
        self._globs = search.globs
        self.walk = Walk(scope, with_ignored=search.with_ignored)
        self.too_large = 0

    def batches(self) -> Iterator[list[tuple[int, str]]]:
        """A batch is open until the next one is requested."""
        size = min(_BATCH, max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4))
        batch = list[tuple[int, str]]()
        try:
            for file in self._files():
                batch.append(file)
                if len(batch) >= size:
                    yield batch
                    _close(batch)
            if batch:
                yield batch
        finally:
            _close(batch)

    def _files(self) -> Iterator[tuple[int, str]]:
        """The caller closes the descriptors."""
        root, most = self._scope.root, self._scope.limits.file_bytes
        with root.place(self._path) as place:
            if place.name and stat.S_ISREG(os.lstat(place.name, dir_fd=place.folder).st_mode):
                with open_file(place, self._path) as file:
                    if os.fstat(file).st_size > most:
                        raise ToolRefused(f"{quote(self._path)} has more than {most:,} bytes; search another file.")
                    yield os.dup(file), place.inside
                return
        patterns = [Patterns(glob) for glob in self._globs]
        with root.folder(self._path) as place:
            for entry in self.walk.files_below(place):
                if not all(pattern.matches(entry.parts[len(place.parts) :]) for pattern in patterns):
                    continue
                with (
                    suppress(OSError, ToolRefused),
                    open_file(entry, entry.name) as file,
                ):  # deleted or not readable
                    if os.fstat(file).st_size > most:
                        self.too_large += 1
                    elif b"\0" not in os.pread(file, _BINARY_HEAD, 0):
                        yield os.dup(file), entry.inside


def _close(batch: list[tuple[int, str]]) -> None:
    while batch:
        os.close(batch.pop()[0])


def _ripgrep_options(query: Query) -> Iterator[str]:
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


def _run_engine(root: str, command: list[str], output: _EngineOutput, files: Sequence[int], budget: Budget) -> str:
    """The engine's error message about the pattern, or ""."""
    with tempfile.TemporaryFile() as errors:
        ended = run(
            command,
            budget,
            output.feed,
            folder=root,
            variables=program_environment(),
            files=files,
            errors=errors.fileno(),
        )
        if ended.code != 2:
            return ""
        errors.seek(0)
        words = errors.read(4096).decode("utf-8", "replace").split()
        return " ".join(words)[:_MAX_ERROR] or "it was refused"


class _EngineOutput:
    """Parses the output of an engine as it arrives."""

    def __init__(self, files: Sequence[int], enough: int) -> None:
        self._index = {str(file).encode(): index for index, file in enumerate(files)}
        self._enough = enough
        self._matches = 0
        self._tail = b""
        self.hits = list[Hit]()

    def feed(self, data: bytes) -> bool:
        """Whether more is wanted."""
        *lines, tail = data.split(b"\n")
        for line in lines:
            self._add((self._tail + line[:_MAX_LINE])[:_MAX_LINE])
            self._tail = b""
        self._tail = (self._tail + tail[:_MAX_LINE])[:_MAX_LINE]
        return not self._enough or self._matches < self._enough

    def _add(self, line: bytes) -> None:
        found = _OUTPUT_LINE.fullmatch(line)
        if found is None or (index := self._index.get(found[1])) is None:
            return
        is_match = found[3] != b"-"
        self._matches += is_match
        text = (found[4] or b"").rstrip(b"\r").decode("utf-8", "replace").removeprefix("\ufeff")
        self.hits.append(Hit(index, int(found[2]), is_match, text.replace("\0", "\ufffd")))
