"""Foreign text for a terminal: nothing in it moves the cursor, changes colours, reorders or hides what a person reads."""

from __future__ import annotations

import re

from rich.cells import cell_len

# Controls of both sets, line marks that some terminals obey, what turns or hides text, halves of characters. Joiners (emoji,
# Persian) and marks of direction stay: they belong to what people write.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_LINE_ENDS = re.compile(r"[ \t]*[\r\n]\s*")
_MORE = "..."


def safe(text: str) -> str:
    """The same text, with the ends of its lines and tabs as the only characters that do something."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Safe, and on one line."""
    return safe(_LINE_ENDS.sub(" ", text).replace("\t", "    "))


def json_safe(text: str) -> str:
    """The same JSON, with escapes of its own for whatever does something to a terminal."""
    return _CONTROL.sub(lambda match: json_escape(match.group()), text)


def json_escape(char: str) -> str:
    """Beyond the first plane as two halves, as JSON spells it."""
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def cut(text: str, columns: int) -> str:
    """As much of a safe line as these columns hold; what is left out is told by dots."""
    # Characters without a width of their own do not make a line longer without end, either.
    if len(text) <= 4 * columns and cell_len(text) <= columns:
        return text
    kept = text[: max(columns - len(_MORE), 0)]
    while kept and cell_len(kept) > columns - len(_MORE):
        kept = kept[:-1]
    return kept + _MORE


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
