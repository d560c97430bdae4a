"""The result of a client's tool as the typed result of the exec that it was called for.

Never an exception: text that cannot be interpreted is passed on as it is, and a failure becomes the error member of the kind.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NoBase64
from typing import Any

from msgspec import Struct

from .....types import Media, Text, Tool, ToolResult
from .. import agent
from ..execs import Exec, command_results, count_lines, failure, file_read, file_written, output
from ..values import valid_utf8
from .client_output import (
    command_output,
    file_content,
    is_failed_read,
    is_failed_search,
    is_refusal,
    is_timeout,
    says_numbers,
    without_reminders,
)
from .commands import framed_output, has_range, is_folder, is_missing
from .listings import files_in, folder_in, grep_result, tree_in
from .requests import ToolRequest

_NOT_FOUND = re.compile(r"no such file|not found|does not exist|ENOENT", re.IGNORECASE)
_PARTIAL = (
    "the client gave back only a part of this file, so it must not be written back from that; "
    "read a part of it with offset and limit, or use a tool that edits in place."
)
_INCOMPLETE = "the output of the command was cut or did not come at all; request less at once. It was: "
_UNCHANGED = re.compile(r"\s{0,9}(?:<system-reminder>)?\s{0,9}File unchanged since last read", re.IGNORECASE)
_MAX_QUOTED = 2000
_MAX_FILE = 1 << 20
_MAX_FILES = 32
_MAX_LINES = (1 << 31) - 1


class MappedTool(Struct, frozen=True):
    """The tool that was called for a request; by_shell: it ran one of our commands."""

    request: ToolRequest
    tool: Tool
    by_shell: bool


class KnownFiles:
    """Files as they were last read or written completely: a client may report one as unchanged without showing it again."""

    def __init__(self) -> None:
        self._files = dict[str, str]()

    def add(self, path: str, text: str) -> None:
        self._files.pop(path, None)
        if len(text) <= _MAX_FILE:
            self._files[path] = text
        while len(self._files) > _MAX_FILES:
            del self._files[next(iter(self._files))]

    def get(self, path: str) -> str | None:
        return self._files.get(path)


class _ClientResult(Struct, frozen=True):
    exec: Exec
    mapped: MappedTool
    text: str
    image: bytes
    is_error: bool
    known: KnownFiles

    @property
    def path(self) -> str:
        return str(self.mapped.request.values.get("path", ""))


def results_of(exec: Exec, mapped: MappedTool, result: ToolResult, known: KnownFiles) -> list[Any]:
    """The results that answer the exec, in order."""
    text, image = _content(result)
    given = _ClientResult(exec, mapped, text, image, result.is_error, known)
    ability = mapped.request.ability
    return _shell(given) if ability == "shell" else [_BY_ABILITY[ability](given)]


def _content(result: ToolResult) -> tuple[str, bytes]:
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    image = b""
    for part in result.parts:
        if isinstance(part, Media) and part.data and not image:
            try:
                image = b64decode(part.data, validate=True)
            except (NoBase64, ValueError):
                texts.append("[an image that cannot be read]")
    return valid_utf8("\n".join(texts)), image


def _shell(given: _ClientResult) -> list[Any]:
    found = command_output(given.text)
    code = found.code if found.code is not None else int(given.is_error)
    if given.exec.kind == "pi_bash":
        return [failure(given.exec, given.text) if code else output(given.exec, given.text)]
    return command_results(given.exec, found.text, code, is_aborted=is_timeout(given.text))


def _read(given: _ClientResult) -> Any:
    values = given.mapped.request.values
    if given.image and not given.is_error:
        return file_read(given.exec, agent.ReadSuccess(data=given.image, file_size=len(given.image)))
    if given.mapped.by_shell:
        return _read_by_shell(given)
    if _UNCHANGED.match(given.text):
        return _read_unchanged(given)
    ranged = has_range(values)
    is_numbered = says_numbers(given.mapped.tool.name, given.mapped.tool.description or "")
    found = file_content(given.text, first=values.get("first") or 1, is_numbered=is_numbered)
    if given.is_error or not found.is_file or (is_failed_read(given.text, given.path) and found.text == given.text):
        return _read_error(given, given.text)
    if not found.is_whole and not ranged:
        return _read_error(given, f"{given.path}: {_PARTIAL}")
    if not ranged:
        given.known.add(given.path, found.text)
    success = _file(found.text)
    success.truncated, success.range_applied = not found.is_whole, ranged
    return file_read(given.exec, success)


def _read_unchanged(given: _ClientResult) -> Any:
    text = given.known.get(given.path)
    if text is None:
        return _read_error(given, f"{given.path} is unchanged, so the client does not show it again; read it in parts.")
    return file_read(given.exec, _file(text))


def _read_by_shell(given: _ClientResult) -> Any:
    """The command reports the size of the file, so a truncated or changed output is detected."""
    found, ranged = framed_output(given.text), has_range(given.mapped.request.values)
    if found is None and is_missing(given.text):
        return _read_error(given, "no such file")
    if found is None and is_folder(given.text):
        return _read_error(given, f"{given.path} is a folder, expected a file.")
    if found is None or found.code:
        return _read_error(given, _INCOMPLETE + given.text[:_MAX_QUOTED])
    size = len(found.text.encode())
    if size > found.size or (size != found.size and not ranged):
        return _read_error(given, f"{given.path}: {_PARTIAL} (It has {found.size:,} bytes, and {size:,} came.)")
    lines = found.breaks + (not ranged and not found.text.endswith("\n") and bool(found.text))
    success = agent.ReadSuccess(content=found.text, total_lines=min(lines, _MAX_LINES), file_size=found.size)
    success.range_applied = ranged
    return file_read(given.exec, success)


def _file(text: str) -> Any:
    return agent.ReadSuccess(content=text, total_lines=count_lines(text), file_size=len(text.encode()))


def _read_error(given: _ClientResult, text: str) -> Any:
    return failure(given.exec, text, is_missing=_NOT_FOUND.search(text[:300]) is not None)


def _write(given: _ClientResult) -> Any:
    content = given.mapped.request.values["content"]
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    by_shell = given.mapped.by_shell
    if given.is_error or (not by_shell and is_refusal(given.text)):
        return failure(given.exec, given.text)
    if by_shell and _written_size(given.text) != len(data):
        return failure(given.exec, given.text or "the file was not written.")
    text = data.decode("utf-8", "replace")
    given.known.add(given.path, text)
    return file_written(given.exec, text, len(data), f"Wrote {len(data)} bytes to {given.path}.")


def _written_size(text: str) -> int:
    """The size that our command prints after it wrote a file; -1 if it failed."""
    found = framed_output(text)
    last = found.text.split()[-1:] if found is not None and found.code == 0 else []
    return int(last[0]) if last and last[0].isdecimal() and len(last[0]) < 15 else -1


def _edit(given: _ClientResult) -> Any:
    is_error = given.is_error or is_refusal(given.text)
    return failure(given.exec, given.text) if is_error else output(given.exec, given.text)


def _search(given: _ClientResult) -> Any:
    """Of list, grep and glob."""
    text, error = _output(given)
    if error:
        return failure(given.exec, error)
    if given.exec.kind.startswith("pi_"):
        return output(given.exec, text)
    if given.mapped.request.ability == "list":
        tree = folder_in(text, given.path) if given.mapped.by_shell else tree_in(text, given.path)
        return agent.LsResult(success=agent.LsSuccess(directory_tree_root=tree))
    render = files_in if given.mapped.request.ability == "glob" else grep_result
    return render(text, given.mapped.request)


def _delete(given: _ClientResult) -> Any:
    text, error = _output(given)
    found = framed_output(given.text) if given.mapped.by_shell else None
    error = error or (text or "it was not deleted." if found and found.code else "")
    if error:
        return _read_error(given, error)
    return agent.DeleteResult(success=agent.DeleteSuccess(path=given.path, deleted_file=given.path))


def _fetch(given: _ClientResult) -> Any:
    if given.is_error or is_failed_search(given.text):
        return failure(given.exec, given.text)
    url = given.exec.args.url
    success = agent.FetchSuccess(url=url, content=given.text, status_code=200, content_type="text/markdown")
    return agent.FetchResult(success=success)


def _output(given: _ClientResult) -> tuple[str, str]:
    """Output and error of a search or list; the output of an incomplete command is not used."""
    if given.is_error or (not given.mapped.by_shell and is_failed_search(given.text)):
        return "", given.text or "the client gave no reason."
    if not given.mapped.by_shell:
        return without_reminders(given.text)[0], ""
    found = framed_output(given.text)
    if found is None:
        return "", _INCOMPLETE + given.text[:_MAX_QUOTED]
    if not found.text and (found.errors or found.code > 1):
        return "", found.errors or f"the command ended with exit code {found.code}."
    return found.text, ""


_BY_ABILITY = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    **dict.fromkeys(("list", "grep", "glob"), _search),
    "delete": _delete,
    "fetch": _fetch,
}
