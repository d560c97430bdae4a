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
