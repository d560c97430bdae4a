"""Files of the workspace as the results of read, write and edit."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ....dialects.shared.media.types import looks_like_text, sniffed
from ....errors import quote
from ....tools.workspace.confinement import Root, contents
from ....tools.workspace.edit import replaced
from ....tools.workspace.limits import Budget, Limits
from ....tools.workspace.messages import Refused
from ....tools.workspace.write import Edit, Write
from ....tools.workspace.write import delete as delete_file
from ....tools.workspace.write import edit as edit_file
from ....tools.workspace.write import write as write_file
from ..wire import agent
from ..wire.execs import Exec

_LARGEST_WHOLE = 4 << 20  # bytes of one answer; a message takes 16 MiB, and a model far less
_HEAD = 3000
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_RESULTS: dict[str, Any] = {
    "read": agent.ReadResult,
    "redacted_read": agent.ReadResult,
    "write": agent.WriteResult,
    "delete": agent.DeleteResult,
    "ls": agent.LsResult,
    "grep": agent.GrepResult,
    "pi_read": agent.PiReadExecResult,
    "pi_write": agent.PiWriteExecResult,
    "pi_edit": agent.PiEditExecResult,
    "pi_ls": agent.PiLsExecResult,
    "pi_grep": agent.PiGrepExecResult,
    "pi_find": agent.PiFindExecResult,
}


def failed(exec: Exec, words: str, *, is_missing: bool = False) -> Any:
    """The error member of the kind."""
    result = _RESULTS[exec.kind]()
    if is_missing and "file_not_found" in result.DESCRIPTOR.fields_by_name:
        result.file_not_found.path = exec.args.path
        return result
    result.error.error = words
    if "path" in result.error.DESCRIPTOR.fields_by_name:
        result.error.path = exec.args.path
    return result


def read(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    """Text as it is, to the byte: the server's edit tool writes back what it has read. So a file is given whole, or in the
    lines that were asked for, or not at all."""
    path = exec.args.path
    with root.file(path) as (_, file):
        data = contents(file, limits.file_bytes, path)
    if sniffed(data[:_HEAD]) in _IMAGES and not looks_like_text(data[:_HEAD]) and exec.kind != "pi_read":
        return _image(path, data, limits)
    text = _text(data)
    if text is None:
        return _invalid(exec, f"{path} is a binary file of {len(data):,} bytes, and only text in UTF-8 can be read.")
    shown, is_range = _lines(text, exec.args)
    if len(shown.encode()) > _LARGEST_WHOLE:
        raise Refused(
            f"{quote(path)} is too large to be read at once ({len(data):,} bytes); read some lines of it, "
            "by offset and limit."
        )
    if exec.kind == "pi_read":
        return agent.PiReadExecResult(success=agent.PiReadExecSuccess(output=shown))
    success = agent.ReadSuccess(path=path, content=shown, total_lines=line_count(text), file_size=len(data))
    success.range_applied = is_range
    return agent.ReadResult(success=success)


def write(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    args = exec.args
    if exec.kind == "pi_edit":
        return _edit(root, limits, budget, exec)
    if exec.kind == "pi_write":
        said = write_file(root, limits, budget, Write(path=args.path, content=args.content))
        return agent.PiWriteExecResult(success=agent.PiWriteExecSuccess(output=said.parts[0].text))  # type: ignore[union-attr] # always one text
    try:
        text = args.file_bytes.decode() if args.file_bytes else args.file_text
    except UnicodeDecodeError:
        raise Refused(f"the content for {quote(args.path)} is no text in UTF-8, and nothing else is written.") from None
    write_file(root, limits, budget, Write(path=args.path, content=text))
    success = agent.WriteSuccess(path=args.path, lines_created=line_count(text), file_size=len(text.encode()))
    if args.return_file_content_after_write:
        success.file_content_after_write = text
    return agent.WriteResult(success=success)


def delete(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    path = exec.args.path
    size = delete_file(root, budget, path)
    return agent.DeleteResult(success=agent.DeleteSuccess(path=path, deleted_file=path, file_size=size))


def line_count(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _edit(root: Root, limits: Limits, budget: Budget, exec: Exec) -> Any:
    """All passages or none: they are tried in memory first."""
    path, changes = exec.args.path, exec.args.edits
    if not changes:
        raise Refused("no edit was given, so nothing would change.")
    with root.file(path) as (_, file):
        data = contents(file, limits.file_bytes, path)
    for change in changes:
        data = replaced(data, change.old_text, change.new_text, everywhere=False, most=limits.file_bytes).data
    for change in changes:
        edit_file(root, limits, budget, Edit(path=path, old_text=change.old_text, new_text=change.new_text))
    said = f"edited {path}: {len(changes)} passages."
    return agent.PiEditExecResult(success=agent.PiEditExecSuccess(output=said))


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _invalid(exec: Exec, words: str) -> Any:
    if exec.kind == "pi_read":
        return failed(exec, words)
    return agent.ReadResult(invalid_file=agent.ReadInvalidFile(path=exec.args.path, reason=words))


def _image(path: str, data: bytes, limits: Limits) -> Any:
    if len(data) > limits.image_bytes:
        raise Refused(f"{quote(path)} is an image of {len(data):,} bytes, expected at most {limits.image_bytes:,}.")
    return agent.ReadResult(success=agent.ReadSuccess(path=path, data=data, file_size=len(data)))


def _lines(text: str, args: Any) -> tuple[str, bool]:
    """The lines that were asked for; an offset below zero counts from the end."""
    offset = args.offset if args.HasField("offset") else 0
    limit = args.limit if args.HasField("limit") and args.limit > 0 else None
    if not offset and limit is None:
        return text, False
    first = max(offset - 1, 0) if offset >= 0 else max(line_count(text) + offset, 0)
    lines = text.split("\n")
    chosen = list(islice(lines, first, None if limit is None else first + limit))
    is_last = first + len(chosen) >= len(lines)
    return "\n".join(chosen) + ("" if is_last or not chosen else "\n"), True
