"""Searches in the workspace: lines by a pattern, files by their names."""

from __future__ import annotations

import heapq
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ....errors import quote
from ....tools.workspace.confinement import Root, opened
from ....tools.workspace.engines import Hit, Query, search
from ....tools.workspace.limits import Budget, Limits
from ....tools.workspace.messages import Refused, cut, shown
from ....tools.workspace.patterns import Patterns
from ....tools.workspace.walk import Entry, Walk
from ..wire import agent
from ..wire.execs import Exec

_MOST_CONTEXT = 20
_MOST_PATTERN = 2000
_BINARY_HEAD = 8192
_BATCH = 64
_TYPES = {"python": "py", "javascript": "js", "typescript": "ts", "rust": "rs", "markdown": "md", "ruby": "rb"}


class _Found(Struct):
    """Hits by file, in the order of files; is_cut: there were more, or not everything was looked at."""

    files: dict[str, list[Hit]]
    is_cut: bool = False


def glob(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    args, pattern = exec.args, exec.args.pattern if exec.kind == "pi_find" else exec.args.glob or "*"
    patterns, most = Patterns(pattern), _most(args, "limit" if exec.kind == "pi_find" else "head_limit", limits.entries)
    with root.folder(args.path or ".") as place:
        walk = Walk(root, limits, budget, with_ignored=False)
        base = len(place.parts)
        matching = (entry for entry in walk.files_below(place) if patterns.matches(entry.parts[base:]))
        newest = heapq.nsmallest(most + 1, ((-_changed(entry), entry.place.inside) for entry in matching))
    files = [path for _, path in newest[:most]]
    if exec.kind == "pi_find":
        return agent.PiFindExecResult(success=agent.PiFindExecSuccess(output="\n".join(files)))
    is_cut = len(newest) > most or bool(walk.stopped)
    found = agent.GrepFilesResult(files=files, total_files=len(files), client_truncated=is_cut)
    return _success(root, exec, "files_with_matches", agent.GrepUnionResult(files=found))


def grep(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    args = exec.args
    mode = "content" if exec.kind == "pi_grep" else args.output_mode or "content"
    if mode not in ("content", "files_with_matches", "count"):
        raise Refused(f"output_mode is {quote(mode)}, expected content, files_with_matches or count.")
    most = _most(args, "limit" if exec.kind == "pi_grep" else "head_limit", limits.matches)
    found = _search(root, limits, budget, exec, _query(exec, mode, most))
    if exec.kind == "pi_grep":
        lines = (f"{path}:{hit.number}:{cut(hit.text, 500)}" for path, hits in found.files.items() for hit in hits)
        return agent.PiGrepExecResult(success=agent.PiGrepExecSuccess(output="\n".join(lines)))
    if mode == "count":
        counts = [agent.GrepFileCount(file=path, count=hits[-1].number) for path, hits in found.files.items()]
        total = sum(count.count for count in counts)
        told = agent.GrepCountResult(counts=counts, total_files=len(counts), total_matches=total)
        told.client_truncated = found.is_cut
        return _success(root, exec, mode, agent.GrepUnionResult(count=told))
    if mode == "files_with_matches":
        paths = list(found.files)[:most]
        files = agent.GrepFilesResult(files=paths, total_files=len(paths), client_truncated=found.is_cut)
        return _success(root, exec, mode, agent.GrepUnionResult(files=files))
    return _success(root, exec, mode, agent.GrepUnionResult(content=_content(found, limits)))


def _query(exec: Exec, mode: str, most: int) -> Query:
    args, pattern = exec.args, exec.args.pattern
    if len(pattern) > _MOST_PATTERN or "\n" in pattern or "\0" in pattern:
        raise Refused("the pattern is longer than 2,000 characters or goes over a line; look for a part in one line.")
    if exec.kind == "pi_grep":
        pattern = re.escape(pattern) if args.literal else pattern
        context, ignores_case = args.context, args.ignore_case
    else:
        context, ignores_case = max(args.context, args.context_before, args.context_after), args.case_insensitive
    return Query(
        pattern=pattern,
        ignore_case=ignores_case,
        context=min(max(context, 0), _MOST_CONTEXT) if mode == "content" else 0,
        most={"content": most + 1, "files_with_matches": 1}.get(mode, 0),
        enough=most + 1 if mode == "content" else 0,
        counting=mode == "count",
    )


def _search(root: Root, limits: Limits, budget: Budget, exec: Exec, query: Query) -> _Found:
    found, matches, most = _Found({}), 0, max(query.enough - 1, 0) or limits.entries
    walk = Walk(root, limits, budget, with_ignored=False)
    for batch in _batches(root, walk, limits, exec):
        for hit in search(root.path, query, [file for file, _ in batch], budget):
            if matches >= most:
                found.is_cut = True
                return found
            found.files.setdefault(batch[hit.index][1], []).append(hit)
            matches += hit.is_match
        if budget.is_over:
            break
    budget.check()
    found.is_cut = budget.is_over or bool(walk.stopped)
    return found


def _batches(root: Root, walk: Walk, limits: Limits, exec: Exec) -> Iterator[list[tuple[int, str]]]:
    """Open files and their paths, some at a time."""
    path, batch = exec.args.path or ".", list[tuple[int, str]]()
    try:
        for file, inside in _files(root, walk, limits, exec, path):
            batch.append((os.dup(file), inside))
            if len(batch) >= _BATCH:
                yield batch
                _close(batch)
        if batch:
            yield batch
    finally:
        _close(batch)


def _files(root: Root, walk: Walk, limits: Limits, exec: Exec, path: str) -> Iterator[tuple[int, str]]:
    with root.place(path) as place:
        is_file = bool(place.name) and stat.S_ISREG(os.lstat(place.name, dir_fd=place.folder).st_mode)
        if is_file:
            with opened(place, path) as file:
                if os.fstat(file).st_size > limits.file_bytes:
                    raise Refused(f"{quote(path)} has more than {limits.file_bytes:,} bytes; search another file.")
                yield file, place.inside
            return
    patterns = _patterns(exec)
    with root.folder(path) as place:
        for entry in walk.files_below(place):
            if not all(pattern.matches(entry.parts[len(place.parts) :]) for pattern in patterns):
                continue
            with suppress(OSError, Refused), opened(entry.place, entry.name) as file:  # or gone, or not ours to read
                if os.fstat(file).st_size <= limits.file_bytes and b"\0" not in os.pread(file, _BINARY_HEAD, 0):
                    yield file, entry.place.inside


def _patterns(exec: Exec) -> list[Patterns]:
    wanted = [exec.args.glob] if exec.args.glob else []
    if exec.kind == "grep" and exec.args.type:
        wanted.append(f"*.{_TYPES.get(exec.args.type, exec.args.type)}")
    return [Patterns(text) for text in wanted]


def _close(batch: list[tuple[int, str]]) -> None:
    while batch:
        os.close(batch.pop()[0])


def _content(found: _Found, limits: Limits) -> agent.GrepContentResult:
    result, most = agent.GrepContentResult(client_truncated=found.is_cut), limits.line_characters // 4
    for path, hits in found.files.items():
        file = result.matches.add()
        file.file = path
        for hit in hits:
            line = file.matches.add()
            line.line_number, line.content, line.is_context_line = hit.number, hit.text[:most], not hit.is_match
            line.content_truncated = len(hit.text) > most
            result.total_lines += 1
            result.total_matched_lines += hit.is_match
    return result


def _success(root: Root, exec: Exec, mode: str, found: agent.GrepUnionResult) -> agent.GrepResult:
    success = agent.GrepSuccess(pattern=exec.args.pattern, path=exec.args.path, output_mode=mode)
    success.workspace_results[shown(root.path)].CopyFrom(found)
    return agent.GrepResult(success=success)


def _most(args: Any, name: str, usual: int) -> int:
    return min(max(getattr(args, name), 1), usual) if args.HasField(name) else usual


def _changed(entry: Entry) -> int:
    try:
        return os.lstat(entry.name, dir_fd=entry.folder).st_mtime_ns
    except OSError:  # gone since it was seen
        return 0
