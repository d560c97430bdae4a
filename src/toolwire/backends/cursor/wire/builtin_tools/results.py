"""What a client's tool gave back, as the typed result of the exec that it was called for. Never an exception: what cannot be told
apart is passed as it is, what went wrong as the error member of the kind."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NoBase64
from typing import Any

from msgspec import Struct

from .....types import Media, Text, Tool, ToolResult
from .. import agent
from ..execs import Exec
from .client_output import content_of as file_in
from .client_output import (
    is_failed_read,
    is_failed_search,
    is_refusal,
    is_timeout,
    said,
    says_numbers,
    without_reminders,
)
from .commands import Framed, framed, has_range, is_folder, is_missing
from .listings import files_in, folder_in, grep_result, tree_in
from .requests import Wish, content_of

_NOT_FOUND = re.compile(r"no such file|not found|does not exist|ENOENT", re.IGNORECASE)
_CUT = (
    "the client gave back only a part of this file, so it must not be written back from that; "
    "read a part of it with offset and limit, or use a tool that edits in place."
)
_NO_FRAME = "the output of the command was cut or did not come at all; ask for less at once. It was: "
_UNCHANGED = re.compile(r"\s{0,9}(?:<system-reminder>)?\s{0,9}File unchanged since last read", re.IGNORECASE)
_SHOWN = 2000
_LARGEST_KEPT = 1 << 20
_MOST_KEPT = 32
_MOST = (1 << 31) - 1


class Call(Struct, frozen=True):
    """The tool that was called for a wish; by_shell: it ran one of our commands."""

    wish: Wish
    tool: Tool
    by_shell: bool


class Known:
    """Files as they were last read or written whole: a client may say that one is unchanged, and show it no second time."""

    def __init__(self) -> None:
        self._files = dict[str, str]()

    def keep(self, path: str, text: str) -> None:
        self._files.pop(path, None)
        if len(text) <= _LARGEST_KEPT:
            self._files[path] = text
        while len(self._files) > _MOST_KEPT:
            del self._files[next(iter(self._files))]

    def file(self, path: str) -> str | None:
        return self._files.get(path)


class Given(Struct, frozen=True):
    """A result with what is needed to read it."""

    exec: Exec
    wish: Wish
    tool: Tool
    by_shell: bool
    text: str
    image: bytes
    is_error: bool
    known: Known

    @property
    def path(self) -> str:
        return str(self.wish.values.get("path", ""))


def results_of(exec: Exec, call: Call, result: ToolResult, known: Known) -> list[Any]:
    """The results to answer the exec with, in order."""
    text, image = _content(result)
    given = Given(exec, call.wish, call.tool, call.by_shell, text, image, result.is_error, known)
    return _shell(given) if call.wish.ability == "shell" else [_ONE[call.wish.ability](given)]


def _content(result: ToolResult) -> tuple[str, bytes]:
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    image = b""
    for part in result.parts:
        if isinstance(part, Media) and part.data and not image:
            try:
                image = b64decode(part.data, validate=True)
            except (NoBase64, ValueError):
                texts.append("[an image that cannot be read]")
    # Half a surrogate pair cannot be written into a message.
    return "\n".join(texts).encode("utf-8", "replace").decode(), image


def _shell(given: Given) -> list[Any]:
    args, heard = given.exec.args, said(given.text)
    code = heard.code if heard.code is not None else int(given.is_error)
    if given.exec.kind == "pi_bash":
        return [_pi(agent.PiBashExecResult, given.text, is_error=code != 0)]
    if given.exec.kind == "shell_stream":
        aborted = is_timeout(given.text)
        ended = agent.ShellStreamExit(code=code & 0xFFFFFFFF, cwd=args.working_directory, aborted=aborted)
        stream = [agent.ShellStream(start=agent.ShellStreamStart())]
        if heard.text:
            stream.append(agent.ShellStream(stdout=agent.ShellStreamStdout(data=heard.text)))
        return [*stream, agent.ShellStream(exit=ended)]
    about = {"command": args.command, "working_directory": args.working_directory}
    if code == 0:
        return [agent.ShellResult(success=agent.ShellSuccess(**about, exit_code=0, stdout=heard.text))]
    failure = agent.ShellFailure(**about, exit_code=code, stdout=heard.text, aborted=is_timeout(given.text))
    return [agent.ShellResult(failure=failure)]


def _read(given: Given) -> Any:
    values = given.wish.values
    if given.image and not given.is_error:
        return _read_success(given, agent.ReadSuccess(data=given.image, file_size=len(given.image)))
    if given.by_shell:
        return _read_by_shell(given)
    ranged = has_range(values)
    if _UNCHANGED.match(given.text):
        return _read_again(given)
    is_numbered = says_numbers(given.tool.name, given.tool.description or "")
    found = file_in(given.text, first=values.get("first") or 1, is_numbered=is_numbered)
    if given.is_error or not found.is_file or (is_failed_read(given.text, given.path) and found.text == given.text):
        return _read_error(given, given.text)
    if not found.is_whole and not ranged:
        return _read_error(given, f"{given.path}: {_CUT}")
    if not ranged:
        given.known.keep(given.path, found.text)
    size = len(found.text.encode())
    whole = agent.ReadSuccess(content=found.text, total_lines=_lines(found.text), file_size=size)
    whole.truncated, whole.range_applied = not found.is_whole, ranged
    return _read_success(given, whole)


def _read_again(given: Given) -> Any:
    """A file that the client has shown before, and did not find worth showing again."""
    text = given.known.file(given.path)
    if text is None:
        return _read_error(given, f"{given.path} is unchanged, so the client does not show it again; read it in parts.")
    success = agent.ReadSuccess(content=text, total_lines=_lines(text), file_size=len(text.encode()))
    return _read_success(given, success)


def _read_by_shell(given: Given) -> Any:
    """The size that the file has is known from the command itself, so what is cut or changed on its way is found out."""
    heard, ranged = framed(given.text), has_range(given.wish.values)
    if heard is None and is_missing(given.text):
        return _read_error(given, "no such file")
    if heard is None and is_folder(given.text):
        return _read_error(given, f"{given.path} is a folder, expected a file.")
    if heard is None or heard.code:
        return _read_error(given, _NO_FRAME + given.text[:_SHOWN])
    size = len(heard.text.encode())
    if size > heard.size or (size != heard.size and not ranged):
        return _read_error(given, f"{given.path}: {_CUT} (It has {heard.size:,} bytes, and {size:,} came.)")
    lines = heard.breaks + (not ranged and not heard.text.endswith("\n") and bool(heard.text))
    success = agent.ReadSuccess(content=heard.text, total_lines=min(lines, _MOST), file_size=heard.size)
    success.range_applied = ranged
    return _read_success(given, success)


def _read_success(given: Given, success: Any) -> Any:
    if given.exec.kind == "pi_read":
        return _pi(agent.PiReadExecResult, success.content, is_error=False)
    success.path = given.path
    return agent.ReadResult(success=success)


def _read_error(given: Given, words: str) -> Any:
    if given.exec.kind == "pi_read":
        return _pi(agent.PiReadExecResult, words, is_error=True)
    if _NOT_FOUND.search(words[:300]):
        return agent.ReadResult(file_not_found=agent.ReadFileNotFound(path=given.path))
    return agent.ReadResult(error=agent.ReadError(path=given.path, error=words or "the client gave no reason."))


def _write(given: Given) -> Any:
    content = content_of(given.exec)
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    fault = given.text if given.is_error or (not given.by_shell and is_refusal(given.text)) else ""
    if given.by_shell and not fault:
        heard = framed(given.text)
        fault = (
            "" if _is_done(heard) and _last_number(heard) == len(data) else given.text or "the file was not written."
        )
    if given.exec.kind == "pi_write":
        return _pi(agent.PiWriteExecResult, fault or f"Wrote {len(data)} bytes to {given.path}.", is_error=bool(fault))
    if fault or given.is_error:
        return agent.WriteResult(error=agent.WriteError(path=given.path, error=fault or "the client gave no reason."))
    text = data.decode("utf-8", "replace")
    given.known.keep(given.path, text)
    success = agent.WriteSuccess(path=given.path, lines_created=_lines(text), file_size=len(data))
    if given.exec.args.return_file_content_after_write:
        success.file_content_after_write = text
    return agent.WriteResult(success=success)


def _edit(given: Given) -> Any:
    return _pi(agent.PiEditExecResult, given.text, is_error=given.is_error or is_refusal(given.text))


def _list(given: Given) -> Any:
    text, fault = _output(given)
    if given.exec.kind == "pi_ls":
        return _pi(agent.PiLsExecResult, fault or text, is_error=bool(fault))
    if fault:
        return agent.LsResult(error=agent.LsError(path=given.path, error=fault))
    tree = folder_in(text, given.path) if given.by_shell else tree_in(text, given.path)
    return agent.LsResult(success=agent.LsSuccess(directory_tree_root=tree))


def _grep(given: Given) -> Any:
    text, fault = _output(given)
    if given.exec.kind == "pi_grep":
        return _pi(agent.PiGrepExecResult, fault or text, is_error=bool(fault))
    return agent.GrepResult(error=agent.GrepError(error=fault)) if fault else grep_result(text, given.wish)


def _glob(given: Given) -> Any:
    text, fault = _output(given)
    if given.exec.kind == "pi_find":
        return _pi(agent.PiFindExecResult, fault or text, is_error=bool(fault))
    return agent.GrepResult(error=agent.GrepError(error=fault)) if fault else files_in(text, given.wish)


def _delete(given: Given) -> Any:
    text, fault = _output(given)
    heard = framed(given.text) if given.by_shell else None
    fault = fault or (text or "it was not deleted." if heard and heard.code else "")
    if fault and _NOT_FOUND.search(fault[:300]):
        return agent.DeleteResult(file_not_found=agent.DeleteFileNotFound(path=given.path))
    if fault:
        return agent.DeleteResult(error=agent.DeleteError(path=given.path, error=fault))
    return agent.DeleteResult(success=agent.DeleteSuccess(path=given.path, deleted_file=given.path))


def _fetch(given: Given) -> Any:
    url = given.exec.args.url
    if given.is_error or is_failed_search(given.text):
        return agent.FetchResult(error=agent.FetchError(url=url, error=given.text or "the client gave no reason."))
    success = agent.FetchSuccess(url=url, content=given.text, status_code=200, content_type="text/markdown")
    return agent.FetchResult(success=success)


def _output(given: Given) -> tuple[str, str]:
    """What was found, and what went wrong; of a command that did not run to its end nothing is believed."""
    if given.is_error or (not given.by_shell and is_failed_search(given.text)):
        return "", given.text or "the client gave no reason."
    if not given.by_shell:
        return without_reminders(given.text)[0], ""
    heard = framed(given.text)
    if heard is None:
        return "", _NO_FRAME + given.text[:_SHOWN]
    if not heard.text and (heard.errors or heard.code > 1):
        return "", heard.errors or f"the command ended with exit code {heard.code}."
    return heard.text, ""


def _is_done(heard: Framed | None) -> bool:
    return heard is not None and heard.code == 0


def _last_number(heard: Framed | None) -> int:
    last = heard.text.split()[-1:] if heard else []
    return int(last[0]) if last and last[0].isdecimal() and len(last[0]) < 15 else -1


def _pi(kind: Any, words: str, *, is_error: bool) -> Any:
    result = kind()
    if is_error:
        result.error.error = words or "the client gave no reason."
    else:
        result.success.output = words
    return result


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n") and bool(text))


_ONE = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    "list": _list,
    "grep": _grep,
    "glob": _glob,
    "delete": _delete,
    "fetch": _fetch,
}
