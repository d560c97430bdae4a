"""Client output that was written for people: exit codes around a command's output, error messages, and files with line numbers,
tags, reminders and notices.

Files need care, because the server's edit tool reads a file and then writes all of it: content that is passed on as a whole file must
be exactly that. So line numbers are removed only if every line has one and they count up; a notice about missing lines, or a
truncated line, makes the file partial; and if a client is known to number its lines, text without numbers is a message and no file.

Numbered lines do not show whether the last one ends with a line break. It is assumed, as in text files, unless the client numbered the
empty line after it. Nor do they show whether lines end with CRLF.

The phrases that clients use are in phrases.toml.
"""

from __future__ import annotations

import re
import tomllib
from pkgutil import get_data

import msgspec
from msgspec import Struct

_LONGEST_REFUSAL = 2000
_LONGEST_LINE = 500
_PHRASES = tomllib.loads((get_data(__package__, "phrases.toml") or b"").decode())


def _phrases(name: str, before: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(_PHRASES[name])})", re.IGNORECASE | re.MULTILINE)


_REFUSAL, _TAG, _COMPLAINT = (_phrases(name, r"\s{0,9}") for name in ("refusal", "tag", "complaint"))
_ABOUT_FILES, _TIMEOUT = _phrases("about_files"), _phrases("timeout")
_HEADER = re.compile(
    r"(?:Chunk ID: [^\n]{0,99}\n|Wall time: [^\n]{0,99}\n|Exit code: (?P<first>-?\d{1,10})\n"
    r"|Process exited with code (?P<second>-?\d{1,10})\n|Original token count: \d{1,15}\n|Total output lines: \d{1,15}\n)+"
    r"Output:\n?"
)
_LEADING = re.compile(r"(?:Error: )?Exit code:? (-?\d{1,10})(?:\n|\Z)")
_TRAILING = re.compile(
    r"\n{0,9}(?:\(?Command exited with (?:exit )?code |Exit Code: |<exited with exit code )(-?\d{1,10})[.)>]?\s{0,9}\Z",
    re.IGNORECASE,
)
_TAIL = 200


class CommandOutput(Struct, frozen=True):
    """code: the exit code, if the client reports it."""

    text: str
    code: int | None = None


def command_output(text: str) -> CommandOutput:
    if (found_json := _from_json(text)) is not None:
        return found_json
    if found := _HEADER.match(text):
        code = found["first"] or found["second"]
        # Without a code the command still runs, and the text says how to read more.
        return CommandOutput(text) if code is None else CommandOutput(text[found.end() :], _number(code))
    if found := _LEADING.match(text):
        return CommandOutput(text[found.end() :], _number(found[1]))
    if found := _TRAILING.search(text, max(len(text) - _TAIL, 0)):
        return CommandOutput(text[: found.start()], _number(found[1]))
    return CommandOutput(text)


def is_refusal(text: str) -> bool:
    """Whether the message of a completed action reads like an error. A long text is no error."""
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None


def is_failed_search(text: str) -> bool:
    """Whether the result of a list, search or fetch is an error message. Only a single line can be one: "error.log" is a name, and a
    page may begin with "Error"."""
    return _is_tagged(text) or (_is_one_line(text) and _COMPLAINT.match(text) is not None)


def is_failed_read(text: str, path: str) -> bool:
    """Whether the result of a read is an error message: one line without a line break, about this file or about reading one. Anything
    else may be a file, such as a log that begins with "Error:"."""
    if _is_tagged(text):
        return True
    name = path.rstrip("/").rpartition("/")[2]
    is_about = (len(name) > 3 and name in text) or _ABOUT_FILES.search(text[:_LONGEST_LINE]) is not None
    return is_about and "\n" not in text and _is_one_line(text) and _REFUSAL.match(text) is not None


def _is_tagged(text: str) -> bool:
    return len(text) <= _LONGEST_REFUSAL and _TAG.match(text) is not None


def _is_one_line(text: str) -> bool:
    return len(text) <= _LONGEST_LINE and "\n" not in text.strip()


def is_timeout(text: str) -> bool:
    return _TIMEOUT.search(text, max(len(text) - _LONGEST_REFUSAL, 0)) is not None


def _number(digits: str) -> int:
    return max(min(int(digits), (1 << 31) - 1), -(1 << 31))


class _Metadata(Struct):
    exit_code: int


class _Output(Struct):
    output: str
    metadata: _Metadata


def _from_json(text: str) -> CommandOutput | None:
    if not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text, type=_Output)
    except msgspec.DecodeError:
        return None
    return CommandOutput(found.output, _number(str(found.metadata.exit_code)))


_OPENED, _CLOSED = "<system-reminder>", "</system-reminder>"
_TAGS = (
    re.compile(r"\s{0,9}<path>[^\n]*</path>\n(?:<type>file</type>\n)?<content>\n"),
    re.compile(r"\s{0,9}<file>\n"),
    re.compile(r"\s{0,9}<content(?: lines=\"[^\"\n]*\")?>\n"),
)
_CLOSING_TAGS = ("</content>", "</file>")
_WHOLE, _CUT, _CUT_ANYWHERE = _phrases("whole"), _phrases("cut"), _phrases("cut_anywhere", "^")
_CUT_REMINDER, _EMPTY, _NUMBERS = _phrases("cut_reminder"), _phrases("empty"), _phrases("numbers")
_CUT_LINES = ("... (line truncated to 2000 chars)", "... [truncated]", "... (line truncated)")
_USUAL_LIMIT = 2000  # lines, of every client seen; exactly so many without an end notice may be a part

# The ordinary forms could be a file's own text: they count only if the client numbers lines or adds tags.
_UNMISTAKABLE = (
    re.compile(r" *(\d+)\u2192(.*)"),
    re.compile(r" {1,5}(\d{1,5})\t(.*)"),
    re.compile(r"(\d{5,9})\| ?(.*)"),
)
_ORDINARY = (re.compile(r" *(\d+)\t(.*)"), re.compile(r" *(\d+) ?[|:] ?(.*)"))


class FileContent(Struct, frozen=True):
    """is_whole: nothing is known to be missing up to the end of the file. is_file: it is no other message."""

    text: str
    is_whole: bool = True
    is_file: bool = True


def says_numbers(name: str, description: str) -> bool:
    """Whether a tool numbers lines: by its description, or because it is Claude Code's Read."""
    return name == "Read" or _NUMBERS.search(description) is not None


def file_content(text: str, *, first: int = 1, is_numbered: bool = False) -> FileContent:
    """The file, or its part from a line on, in the result of a client's read tool."""
    text, reminders = without_reminders(text.replace("\r\n", "\n"))
    if any(map(_EMPTY.search, reminders)) and not text.strip():
        return FileContent("")
    text, is_tagged = _untagged(text)
    is_numbered = is_numbered or is_tagged
    is_cut = any(map(_CUT_REMINDER.search, reminders)) or (not is_tagged and _CUT_ANYWHERE.search(text) is not None)
    before, _, last = text.rstrip().rpartition("\n")
    is_end = is_numbered and _WHOLE.fullmatch(last) is not None
    if is_end or _CUT.fullmatch(last):
        text, is_cut = before.rstrip("\n"), is_cut or not is_end
    if is_tagged and not text:
        return FileContent("", is_whole=not is_cut)
    bare = _bare(text.split("\n"), first, is_numbered=is_numbered)
    if bare is None:
        return FileContent(text, is_whole=not is_cut, is_file=not is_numbered)
    is_cut = is_cut or any(line.endswith(_CUT_LINES) for line in bare) or (not is_end and len(bare) == _USUAL_LIMIT)
    ending = "" if not bare[-1] and len(bare) > 1 and not is_end else "\n"
    return FileContent("\n".join(bare) + ending, is_whole=not is_cut)


def without_reminders(text: str) -> tuple[str, list[str]]:
    """The text without the reminders that a client appends for the model, and those reminders."""
    found = list[str]()
    while (stripped := text.rstrip()).endswith(_CLOSED) and (at := stripped.rfind(_OPENED)) >= 0:
        found.append(stripped[at:])
        text = stripped[:at].rstrip("\n")
    return text, found


def _untagged(text: str) -> tuple[str, bool]:
    for tag in _TAGS:
        if found := tag.match(text):
            text = text[found.end() :].rstrip()
            for closing in _CLOSING_TAGS:
                if text.endswith(closing):
                    return text.removesuffix(closing).removesuffix("\n"), True
            return text, True
    return text, False


def _bare(lines: list[str], first: int, *, is_numbered: bool) -> list[str] | None:
    """The lines without their numbers, if each has one of the same form and they count up."""
    if not lines[-1] and len(lines) > 1:
        lines = lines[:-1]
    # Before a reminder a client may strip an empty last line down to its number.
    is_stripped = is_numbered and len(lines) > 1 and lines[-1].lstrip(" ") == str(max(first, 1) + len(lines) - 1)
    for form in (*_UNMISTAKABLE, *(_ORDINARY if is_numbered else ())):
        bare = list[str]()
        for number, line in enumerate(lines[:-1] if is_stripped else lines, max(first, 1)):
            if (text := _numbered(form, line, number)) is None:
                break
            bare.append(text)
        else:
            return [*bare, ""] if is_stripped else bare
    return None


def _numbered(form: re.Pattern[str], line: str, number: int) -> str | None:
    found = form.fullmatch(line)
    return found[2] if found is not None and len(found[1]) <= 9 and int(found[1]) == number else None
