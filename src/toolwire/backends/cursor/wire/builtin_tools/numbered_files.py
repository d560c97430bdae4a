"""A file as it is, from what clients write around it when they read it: line numbers, tags, reminders, notices.

Why so careful: the server's own edit tool reads a file and then writes all of it. What is passed as the whole of a file must be
the whole of it, and nothing else. So numbers are taken off only where every line has one and they count on; a notice that lines are
missing, or a line that was cut, makes the file partial; and where a client is known to number its lines, a text without numbers is
no file, but what the client has to say instead.

What cannot be told from numbered lines is whether the last one ends with a line break. It is taken to do so, as text files do,
unless the client has numbered the emptiness behind that break. Nor can it be told whether lines ended with CRLF.
"""

from __future__ import annotations

import re

from msgspec import Struct

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
