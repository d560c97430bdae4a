"""The change that a tool wants to make to a file, as a unified diff that a user can read before they approve it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it needs modules that Windows does not have
    from ...tools.workspace.files import FilePreview


_MAX_COMPARED = 5_000  # lines; difflib takes quadratic time in the worst case
_CONTEXT = 3


def diff_lines(change: FilePreview) -> list[tuple[str, str]]:
    """Lines and their styles. A file that is not text, or is very long, is described in one line."""
    title = f"{change.path} ({'new file' if change.before is None else 'changed'})"
    try:
        before, after = ((data or b"").decode().splitlines() for data in (change.before, change.after))
    except UnicodeDecodeError:
        return [(title, "bold"), (f"{len(change.after):,} bytes that are no UTF-8 text", "yellow")]
    if len(before) + len(after) > _MAX_COMPARED and change.before is not None:
        return [(title, "bold"), (f"{len(before):,} lines become {len(after):,}; too many to compare", "yellow")]
    lines = list(difflib.unified_diff(before, after, lineterm="", n=_CONTEXT))[2:]
    styled = [(line, _style(line)) for line in lines]
    return [(title, "bold"), *(styled or [("no line changes", "dim")])]


def _style(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
