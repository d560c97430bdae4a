"""What clients say around a command's output and instead of a result, in words that only people were meant to read."""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct

_LONGEST_REFUSAL = 2000
# Some dialects have no flag for a result that is an error: the words are all there is.
_REFUSAL = re.compile(
    r"\s{0,9}(?:<tool_use_error>|<error>|error\b|failed\b|failure\b|file not found|no such file|permission denied"
    r"|you must (?:first )?read|file has not been read|the user (?:doesn't|does not|rejected|has rejected|declined)"
    r"|the user doesn.t want|invalid\b|unknown tool|unsupported call|tool execution aborted|ENOENT|EACCES|EISDIR|ENOTDIR)",
    re.IGNORECASE,
)
# What no file, list or page begins with.
_TAGGED = re.compile(
    r"\s{0,9}(?:<tool_use_error>|the user (?:doesn.t|does not) want to|tool execution aborted)", re.IGNORECASE
)
_LONGEST_LINE = 500
_COMPLAINT = re.compile(
    r"\s{0,9}(?:<error>|(?:error|failed|failure|invalid)(?::|\s)|file not found|no such file|permission denied"
    r"|unknown tool|unsupported call|ENOENT|EACCES|EISDIR|ENOTDIR)",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(
    r"cannot|can.t|could ?n.t|could not|unable to|failed to|error (?:reading|opening|accessing)|not found|no such"
    r"|does(?: not|n.t) exist|denied|not allowed|is a (?:directory|folder)|too large|exceeds|outside|must (?:first )?read"
    r"|not been read|timed? ?out|\b(?:ENOENT|EACCES|EISDIR|ENOTDIR|EPERM)\b",
    re.IGNORECASE,
)
_TIMEOUT = re.compile(
    r"terminat\w+ (?:the )?command after exceeding timeout|command timed out|timed out after \d", re.IGNORECASE
)
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


class Said(Struct, frozen=True):
    """What a command printed, and its exit code if the client has told it."""

    text: str
    code: int | None = None


def said(text: str) -> Said:
    if (told := _in_json(text)) is not None:
        return told
    if found := _HEADER.match(text):
        code = found["first"] or found["second"]
        # Without a code it still runs, and the words say how to ask for more.
        return Said(text) if code is None else Said(text[found.end() :], _number(code))
    if found := _LEADING.match(text):
        return Said(text[found.end() :], _number(found[1]))
    if found := _TRAILING.search(text, max(len(text) - _TAIL, 0)):
        return Said(text[: found.start()], _number(found[1]))
    return Said(text)


def is_refusal(text: str) -> bool:
    """Whether a message about something that was done reads like an error; something long is no error."""
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None


def is_failed_search(text: str) -> bool:
    """Whether a list, lines or a page are an error message. Only one line can be: "error.log" is a name, and a page may begin with
    "Error"."""
    return _is_tagged(text) or (_is_one_line(text) and _COMPLAINT.match(text) is not None)


def is_failed_read(text: str, path: str) -> bool:
    """Whether what stands for a file is an error message: one line without a break at its end, about this file or about reading one.
    Anything else may be a file, as a log is that begins with "Error:"."""
    if _is_tagged(text):
        return True
    name = path.rstrip("/").rpartition("/")[2]
    is_about = (len(name) > 3 and name in text) or _ABOUT_FILES.search(text[:_LONGEST_LINE]) is not None
    return is_about and "\n" not in text and _is_one_line(text) and _REFUSAL.match(text) is not None


def _is_tagged(text: str) -> bool:
    return len(text) <= _LONGEST_REFUSAL and _TAGGED.match(text) is not None


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


def _in_json(text: str) -> Said | None:
    if not text.startswith("{"):
        return None
    try:
        found = msgspec.json.decode(text, type=_Output)
    except msgspec.DecodeError:
        return None
    return Said(found.output, _number(str(found.metadata.exit_code)))


_OPENED, _CLOSED = "<system-reminder>", "</system-reminder>"
_TAGS = (
    re.compile(r"\s{0,9}<path>[^\n]*</path>\n(?:<type>file</type>\n)?<content>\n"),
    re.compile(r"\s{0,9}<file>\n"),
    re.compile(r"\s{0,9}<content(?: lines=\"[^\"\n]*\")?>\n"),
)
_CLOSING_TAGS = ("</content>", "</file>")
_WHOLE = re.compile(r"\(End of file - total \d+ lines?\)", re.IGNORECASE)
_CUT = re.compile(
    r"\((?:Output capped at|Showing lines \d|File has more lines).*\)"
    r"|\[(?:File truncated|Truncated|Showing lines \d|\d+ more lines).*\]"
    r"|\.\.\. ?\[?\d+ (?:more )?(?:lines|characters|bytes) (?:truncated|omitted|not shown).*",
    re.IGNORECASE,
)
_CUT_SOMEWHERE = re.compile(
    r"^(?:(?:\.\.\.|\u2026) ?\[?\d+ (?:lines?|tokens?|characters|chars|bytes) (?:truncated|omitted)"
    r"|The tool call succeeded but the output was truncated"
    r"|Warning: truncated output \(original token count"
    r"|\[\.\.\. omitted \d+ of \d+ lines"
    r"|IMPORTANT: The file content has been truncated"
    r"|Showing lines \d+-\d+ of \d+ total lines)",
    re.IGNORECASE | re.MULTILINE,
)
_CUT_REMINDER = re.compile(r"truncated|too large", re.IGNORECASE)
_CUT_LINES = ("... (line truncated to 2000 chars)", "... [truncated]", "... (line truncated)")
_USUAL_LIMIT = 2000  # lines, of every client seen; so many and no word about the end may be the first part of more
_EMPTY = re.compile(r"the file exists but (?:the contents are|is) empty|\(empty file\)|File is empty", re.IGNORECASE)

# Those that could be a file's own text count only where the client says that it numbers lines, or has put tags around them.
_UNMISTAKABLE = (
    re.compile(r" *(\d+)\u2192(.*)"),
    re.compile(r" {1,5}(\d{1,5})\t(.*)"),
    re.compile(r"(\d{5,9})\| ?(.*)"),
)
_ORDINARY = (re.compile(r" *(\d+)\t(.*)"), re.compile(r" *(\d+) ?[|:] ?(.*)"))
_SAYS_NUMBERS = re.compile(r"cat -n|line numbers? (?:starting|prefix)|prefixed (?:with|by) ", re.IGNORECASE)


class Content(Struct, frozen=True):
    """is_whole: nothing is known to be missing from where it begins to the end of the file; is_file: it is no other message."""

    text: str
    is_whole: bool = True
    is_file: bool = True


def says_numbers(name: str, description: str) -> bool:
    """Whether a tool is known to put numbers before lines: it says so, or it is the one that everybody knows to."""
    return name == "Read" or _SAYS_NUMBERS.search(description) is not None


def content_of(text: str, *, first: int = 1, is_numbered: bool = False) -> Content:
    """The file, or the part of it from a line on, that a client's read tool has given back as text."""
    text, reminders = without_reminders(text.replace("\r\n", "\n"))
    if any(map(_EMPTY.search, reminders)) and not text.strip():
        return Content("")
    text, is_tagged = _untagged(text)
    is_numbered = is_numbered or is_tagged
    is_cut = any(map(_CUT_REMINDER.search, reminders)) or (not is_tagged and _CUT_SOMEWHERE.search(text) is not None)
    before, _, last = text.rstrip().rpartition("\n")
    is_end = is_numbered and _WHOLE.fullmatch(last) is not None
    if is_end or _CUT.fullmatch(last):
        text, is_cut = before.rstrip("\n"), is_cut or not is_end
    if is_tagged and not text:
        return Content("", is_whole=not is_cut)
    bare = _bare(text.split("\n"), first, is_numbered=is_numbered)
    if bare is None:
        return Content(text, is_whole=not is_cut, is_file=not is_numbered)
    is_cut = is_cut or any(line.endswith(_CUT_LINES) for line in bare) or (not is_end and len(bare) == _USUAL_LIMIT)
    ending = "" if not bare[-1] and len(bare) > 1 and not is_end else "\n"
    return Content("\n".join(bare) + ending, is_whole=not is_cut)


def without_reminders(text: str) -> tuple[str, list[str]]:
    """What a client tells the model behind a file or whatever else it found."""
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
    """The lines without their numbers, if each has one of the same form and they count on."""
    if not lines[-1] and len(lines) > 1:
        lines = lines[:-1]
    # An empty last line keeps nothing but its number where a client strips what it puts a reminder behind.
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
