"""Built-in execs as shell commands, for clients that have a shell and no other suitable tool.

Every name and text is quoted as one word, and names are passed by redirection, after "--" or after a folder, so that they are never
interpreted by the shell or the program. Each command marks the start and end of its output with a line, so that the output is found in
whatever text a client adds, and is known to be complete; a file is read with its size. The errors of a search are printed after its
matches, with its exit code, so that an error is never taken for a match.
"""

from __future__ import annotations

import re
from base64 import b64encode
from shlex import quote
from typing import Any

from msgspec import Struct

from .requests import ToolRequest

MAX_LENGTH = 120_000  # bytes of a command: Linux limits a single argument to 128 KiB
_BEGIN, _END, _NONE, _FOLDER = "toolwire-begin", "toolwire-end", "toolwire-none", "toolwire-folder"
_ERRORS = "toolwire-errors"
_FIRST = re.compile(rf"^{_BEGIN}(?: (\d{{1,15}}) (\d{{1,15}}))?\n", re.MULTILINE)
_LAST = re.compile(rf"\n{_END} (\d{{1,9}})(?:\n|\Z)")
_MAX_LINES = 1000
_MAX_NAMES = 20_000  # of one folder
_MAX_ERRORS = 8  # lines
_MAX_BRACES = 16
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SKIPPED = r"\( -name .git -o -name node_modules \) -prune -o"


class FramedOutput(Struct, frozen=True):
    """Output of a command: size and breaks are the bytes and line breaks of a file that it read, errors those of a search."""

    text: str
    code: int
    size: int = 0
    breaks: int = 0
    errors: str = ""


def command_of(request: ToolRequest) -> str | None:
    """None if no command can do it, or the command would be too long."""
    values = request.values
    command: str | None
    match request.ability:
        case "read":
            command = _read(values)
        case "write":
            command = _write(values["path"], values["content"])
        case "list":
            command = _search(f"ls -1Ap -- {_word(values['path'])}", _MAX_NAMES)
        case "grep":
            command = _grep(values)
        case "glob":
            command = _glob(values)
        case "delete":
            command = _with_frame(f"rm -- {_word(values['path'])}")
        case _:
            return None
    return (
        command if command and "\0" not in command and len(command.encode("utf-8", "replace")) <= MAX_LENGTH else None
    )


def framed_output(text: str) -> FramedOutput | None:
    """From the first start mark to the last end mark; None if one is missing, because the output was cut or there was none."""
    if f"{_BEGIN}\r" in text or "\r\n" + _END in text:  # through a terminal
        text = text.replace("\r\n", "\n")
    first, end = _FIRST.search(text), text.rfind(f"\n{_END} ")
    last = _LAST.match(text, end) if end >= 0 else None
    if first is None or last is None or last.start() < first.end() - 1:
        return None
    inside, code = text[first.end() : last.start()], int(last[1])
    found, mark, errors = inside.rpartition(f"\n{_ERRORS}\n")
    if mark and not first[1]:  # a file may contain the mark itself
        return FramedOutput(found, code, errors=errors.rpartition("\n")[0])
    return FramedOutput(inside, code, int(first[1] or 0), int(first[2] or 0))


def is_missing(text: str) -> bool:
    return re.search(rf"^{_NONE}$", text, re.MULTILINE) is not None


def is_folder(text: str) -> bool:
    return re.search(rf"^{_FOLDER}$", text, re.MULTILINE) is not None


def in_folder(command: str, folder: str) -> str:
    """In a subshell: neither the folder nor an exit affects the next command."""
    return f"(cd -- {_word(folder)} || exit 1\n{command}\n)"


def _word(path: str) -> str:
    """One word, and never "-", which means the last folder to cd and standard input to others."""
    return quote(f"./{path}" if path.startswith("-") else path)


def _with_frame(command: str) -> str:
    return f"printf '{_BEGIN}\\n'; {command} 2>&1; printf '\\n{_END} %s\\n' \"$?\""


def _search(search: str, most: int) -> str:
    """Prints the first lines of a search, then the last lines of its errors and its exit code."""
    searched = f"{{ {search}; printf '%s\\n' \"$?\" >&2; }} | head -n {most} >&3"
    caught = f"{{ caught=$({{ {searched}; }} 2>&1 | tail -n {_MAX_ERRORS + 1}); }} 3>&1"
    code = "$(printf '%s\\n' \"$caught\" | tail -n 1)"
    return f"printf '{_BEGIN}\\n'; {caught}; printf '\\n{_ERRORS}\\n%s\\n{_END} %s\\n' \"$caught\" \"{code}\""


def _read(values: dict[str, Any]) -> str:
    path = quote(values["path"])
    shown = f"cat <{path}"
    if has_range(values):
        first = values.get("first") or 1
        last = f"{first + values['limit'] - 1}" if values.get("limit") else "$"
        shown = f"sed -n '{first},{last}p' <{path}"
    measured = f"printf '{_BEGIN} %s %s\\n' $(wc -c <{path}) $(wc -l <{path})"
    return (
        f"if [ -f {path} ]; then {measured}; {shown}; printf '\\n{_END} %s\\n' \"$?\"; "
        f"elif [ -e {path} ]; then printf '{_FOLDER}\\n'; else printf '{_NONE}\\n'; fi"
    )


def has_range(values: dict[str, Any]) -> bool:
    """Not for a range that counts from the end: then the whole file is read."""
    first, limit = values.get("first"), values.get("limit")
    return (first is not None and first > 1) or bool(limit and (first or 0) >= 0)


def _write(path: str, content: str | bytes) -> str:
    folder = path.rpartition("/")[0]
    before = f"mkdir -p -- {_word(folder)} && " if folder else ""
    if isinstance(content, bytes) or _UNWRITABLE.search(content):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        written = f"printf %s {b64encode(data).decode()} | base64 -d"
    else:
        written = f"printf %s {quote(content)}"
    return _with_frame(f"{before}{written} >{quote(path)} && wc -c <{quote(path)}")


def _grep(values: dict[str, Any]) -> str:
    options = ["-i"] if values.get("ignore_case") else []
    options += {"files_with_matches": ["-l"], "count": ["-c"]}.get(values.get("mode", ""), ["-n"])
    for name, letter in (("before", "B"), ("after", "A"), ("context", "C")):
        options += [f"-{letter}{min(values[name], 20)}"] if values.get(name, 0) > 0 else []
    place, pattern = _word(values.get("path") or "."), quote(values["pattern"])
    include = quote(values.get("include") or "")
    fast = ["rg", "--no-heading", "--color=never", "-H", *options]
    fast += ["--type", quote(values["type"])] if values.get("type") else []
    fast += ["--multiline"] if values.get("multiline") else []
    fast += ["-g", include] if values.get("include") else []
    slow = ["grep", "-rHIE", *options, "--exclude-dir=.git"]
    slow += [f"--include={quote(values['include'].rpartition('/')[2])}"] if values.get("include") else []
    ending = f"-e {pattern} -- {place}"
    most = min(max(values.get("limit") or _MAX_LINES, 1), _MAX_LINES)
    search = f"if command -v rg >/dev/null; then {' '.join(fast)} {ending}; else {' '.join(slow)} {ending}; fi"
    return _search(search, most)


def _glob(values: dict[str, Any]) -> str | None:
    patterns = _alternatives(values["pattern"])
    if not patterns:
        return None
    place = (values.get("path") or ".").rstrip("/") or "/"
    tests = " -o ".join(_test(place, pattern) for pattern in patterns)
    most = min(max(values.get("limit") or _MAX_LINES, 1), _MAX_LINES)
    return _search(f"find {_word(place)} {_SKIPPED} -type f \\( {tests} \\) -print", most)


def _test(place: str, pattern: str) -> str:
    """In find's -path a star also matches slashes, so "**/" is one star."""
    pattern = pattern.removeprefix("./")
    while pattern.startswith("**/"):
        pattern = pattern.removeprefix("**/")
    if "/" not in pattern:
        return f"-name {quote(pattern)}"
    base = "" if pattern.startswith("/") else f"{'./' if place.startswith('-') else ''}{_literal(place)}/"
    return f"-path {quote(base + pattern.replace('**/', '*'))}"


def _literal(text: str) -> str:
    return re.sub(r"[*?\[\\]", r"\\\g<0>", text)


def _alternatives(pattern: str) -> list[str]:
    """{a,b} expanded, because find does not support it; [] if there would be too many."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > _MAX_BRACES:
            return []
        text = waiting.pop()
        if found := _BRACES.search(text):
            choices = found[1].split(",")[: _MAX_BRACES + 1]
            waiting += [text[: found.start()] + choice + text[found.end() :] for choice in choices]
        else:
            done.append(text)
    return done
