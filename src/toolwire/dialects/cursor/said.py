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
    """Whether it reads like an error and not like what was asked for; something long is no error."""
    return len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text) is not None


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
