"""Built-in execs as commands, for clients that have a shell and nothing else for them.

Every name and text is quoted as one word, and names are given by redirection or after "--" or with a folder before them: what they
are made of means nothing to the shell or to the program. Each command says in a line of its own where its output begins and ends,
so that the answer is found in whatever a client writes around it, and is known to be whole; a file is read with its size. What a search
complains about is printed after what it found, with its own exit code, so that an error is never taken for a match.
"""

from __future__ import annotations

import re
from base64 import b64encode
from shlex import quote
from typing import Any

from msgspec import Struct

from .requests import Wish

LONGEST = 120_000  # bytes of a command: Linux takes no single argument of more than 128 KiB
_BEGIN, _END, _NONE, _FOLDER = "toolwire-begin", "toolwire-end", "toolwire-none", "toolwire-folder"
_ERRORS = "toolwire-errors"
_FIRST = re.compile(rf"^{_BEGIN}(?: (\d{{1,15}}) (\d{{1,15}}))?\n", re.MULTILINE)
_LAST = re.compile(rf"\n{_END} (\d{{1,9}})(?:\n|\Z)")
_MOST_LINES = 1000
_MOST_NAMES = 20_000  # of one folder
_MOST_ERRORS = 8  # lines
_MOST_BRACES = 16
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_SKIPPED = r"\( -name .git -o -name node_modules \) -prune -o"


class Framed(Struct, frozen=True):
    """What a command printed, its exit code, the bytes and line breaks of the file that it read, and what a search complained about."""

    text: str
    code: int
    size: int = 0
    breaks: int = 0
    errors: str = ""


def command_of(wish: Wish) -> str | None:
    """None where a command cannot do it, or would be longer than a system takes."""
    values = wish.values
    command: str | None
    match wish.ability:
        case "read":
            command = _read(values)
        case "write":
            command = _write(values["path"], values["content"])
        case "list":
            command = _found(f"ls -1Ap -- {_word(values['path'])}", _MOST_NAMES)
        case "grep":
            command = _grep(values)
        case "glob":
            command = _glob(values)
        case "delete":
            command = _framed(f"rm -- {_word(values['path'])}")
        case _:
            return None
    return command if command and "\0" not in command and len(command.encode("utf-8", "replace")) <= LONGEST else None


def framed(text: str) -> Framed | None:
    """From the first beginning to the last end; None if one of them is missing: the output was cut, or there was none."""
    if f"{_BEGIN}\r" in text or "\r\n" + _END in text:  # through a terminal
        text = text.replace("\r\n", "\n")
    first, end = _FIRST.search(text), text.rfind(f"\n{_END} ")
    last = _LAST.match(text, end) if end >= 0 else None
    if first is None or last is None or last.start() < first.end() - 1:
        return None
    inside, code = text[first.end() : last.start()], int(last[1])
    found, mark, errors = inside.rpartition(f"\n{_ERRORS}\n")
    if mark and not first[1]:  # a file that is read may hold the mark itself
        return Framed(found, code, errors=errors.rpartition("\n")[0])
    return Framed(inside, code, int(first[1] or 0), int(first[2] or 0))


def is_missing(text: str) -> bool:
    return re.search(rf"^{_NONE}$", text, re.MULTILINE) is not None


def is_folder(text: str) -> bool:
    return re.search(rf"^{_FOLDER}$", text, re.MULTILINE) is not None


def in_folder(command: str, folder: str) -> str:
    """In a shell of its own: neither the folder nor an exit is left to the next command."""
    return f"(cd -- {_word(folder)} || exit 1\n{command}\n)"


def _word(path: str) -> str:
    """One word, and never "-", which is the last folder to cd and the standard input to others."""
    return quote(f"./{path}" if path.startswith("-") else path)


def _framed(command: str, about: str = "") -> str:
    return f"printf '{_BEGIN}{about}\\n'; {command} 2>&1; printf '\\n{_END} %s\\n' \"$?\""


def _found(search: str, most: int) -> str:
    """The first lines that a search prints; then the last ones of its errors, with its exit code as the last of all."""
    searched = f"{{ {search}; printf '%s\\n' \"$?\" >&2; }} | head -n {most} >&3"
    caught = f"{{ caught=$({{ {searched}; }} 2>&1 | tail -n {_MOST_ERRORS + 1}); }} 3>&1"
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
    """A range that counts from the end is left to whoever asked: he gets the whole."""
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
    return _framed(f"{before}{written} >{quote(path)} && wc -c <{quote(path)}")


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
    most = min(max(values.get("limit") or _MOST_LINES, 1), _MOST_LINES)
    search = f"if command -v rg >/dev/null; then {' '.join(fast)} {ending}; else {' '.join(slow)} {ending}; fi"
    return _found(search, most)


def _glob(values: dict[str, Any]) -> str | None:
    patterns = _alternatives(values["pattern"])
    if not patterns:
        return None
    place = (values.get("path") or ".").rstrip("/") or "/"
    tests = " -o ".join(_test(place, pattern) for pattern in patterns)
    most = min(max(values.get("limit") or _MOST_LINES, 1), _MOST_LINES)
    return _found(f"find {_word(place)} {_SKIPPED} -type f \\( {tests} \\) -print", most)


def _test(place: str, pattern: str) -> str:
    """To find's -path a star also means folders, so that "**/" is only one of those."""
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
    """{a,b} written out, since find does not know it; none where that would be too many."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > _MOST_BRACES:
            return []
        text = waiting.pop()
        if found := _BRACES.search(text):
            choices = found[1].split(",")[: _MOST_BRACES + 1]
            waiting += [text[: found.start()] + choice + text[found.end() :] for choice in choices]
        else:
            done.append(text)
    return done
