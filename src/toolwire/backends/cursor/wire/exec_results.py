"""Results of built-in execs as typed messages, whether a tool of the client or the gateway did the work.

The result of a pi_ kind is plain text; all other kinds have a structure of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from . import agent
from .execs import Exec, empty_result

_MAX_COUNT = (1 << 31) - 1


class GrepHit(Struct, frozen=True):
    path: str
    number: int
    text: str
    is_context: bool = False


def failure(exec: Exec, message: str, *, is_missing: bool = False) -> Any:
    """The error member of the kind. is_missing: there is no file at the path, which some kinds can express."""
    result = empty_result(exec.kind)
    if is_missing and "file_not_found" in result.DESCRIPTOR.fields_by_name:
        result.file_not_found.path = exec.args.path
        return result
    result.error.error = message or "the client gave no reason."
    for name in ("path", "url"):
        if name in result.error.DESCRIPTOR.fields_by_name:
            setattr(result.error, name, getattr(exec.args, name))
    return result


def output(exec: Exec, text: str) -> Any:
    """The successful result of a pi_ kind."""
    result = empty_result(exec.kind)
    result.success.output = text
    return result


def command_results(
    exec: Exec, stdout: str, code: int, *, why_stopped: str = "", is_aborted: bool = False, reason: Any = None
) -> list[Any]:
    """Of a shell, or the events of a shell_stream."""
    args = exec.args
    if exec.kind == "shell_stream":
        events = [agent.ShellStream(start=agent.ShellStreamStart())]
        if text := stdout + (f"[{why_stopped}]" if why_stopped else ""):
            events.append(agent.ShellStream(stdout=agent.ShellStreamStdout(data=text)))
        last = agent.ShellStreamExit(
            code=code & 0xFFFFFFFF, cwd=args.working_directory, aborted=is_aborted, abort_reason=reason
        )
        return [*events, agent.ShellStream(exit=last)]
    about: Any = {"command": args.command, "working_directory": args.working_directory, "stdout": stdout}
    if code == 0:
        return [agent.ShellResult(success=agent.ShellSuccess(**about, exit_code=0))]
    failed = agent.ShellFailure(**about, exit_code=code, stderr=why_stopped, aborted=is_aborted, abort_reason=reason)
    return [agent.ShellResult(failure=failed)]


def file_read(exec: Exec, success: agent.ReadSuccess) -> Any:
    if exec.kind == "pi_read":
        return output(exec, success.content)
    success.path = exec.args.path
    return agent.ReadResult(success=success)


def file_written(exec: Exec, text: str, size: int, message: str) -> Any:
    """message: the whole result of a pi_write."""
    if exec.kind == "pi_write":
        return output(exec, message)
    success = agent.WriteSuccess(path=exec.args.path, lines_created=count_lines(text), file_size=size)
    if exec.args.return_file_content_after_write:
        success.file_content_after_write = text
    return agent.WriteResult(success=success)


def grep_success(
    pattern: str, path: str, mode: str, found: agent.GrepUnionResult, workspace: str = ""
) -> agent.GrepResult:
    success = agent.GrepSuccess(pattern=pattern, path=path, output_mode=mode)
    success.workspace_results[workspace or path].CopyFrom(found)
    return agent.GrepResult(success=success)


def files_found(files: Iterable[str], *, is_cut: bool) -> agent.GrepUnionResult:
    found = agent.GrepFilesResult(files=files, client_truncated=is_cut)
    found.total_files = len(found.files)
    return agent.GrepUnionResult(files=found)


def lines_found(hits: Iterable[GrepHit], *, is_cut: bool, longest: int | None = None) -> agent.GrepUnionResult:
    """longest: lines with more characters are shortened."""
    content = agent.GrepContentResult(client_truncated=is_cut)
    files = dict[str, agent.GrepFileMatch]()
    for hit in hits:
        if hit.path not in files:
            files[hit.path] = content.matches.add(file=hit.path)
        line = files[hit.path].matches.add(line_number=hit.number, content=hit.text[:longest])
        line.is_context_line, line.content_truncated = hit.is_context, len(line.content) < len(hit.text)
        content.total_lines += 1
        content.total_matched_lines += not hit.is_context
    return agent.GrepUnionResult(content=content)


def counts_found(counts: Mapping[str, int], *, is_cut: bool = False) -> agent.GrepUnionResult:
    listed = [agent.GrepFileCount(file=file, count=count) for file, count in counts.items() if count]
    total = min(sum(counts.values()), _MAX_COUNT)
    counted = agent.GrepCountResult(
        counts=listed, total_files=len(listed), total_matches=total, client_truncated=is_cut
    )
    return agent.GrepUnionResult(count=counted)


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))
