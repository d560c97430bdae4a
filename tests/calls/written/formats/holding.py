"""How far the words lag behind a text that comes letter by letter."""

from __future__ import annotations

from tests.calls.speaking import read_all_ways, told
from toolwire.calls.written.formats.base import PlainText
from toolwire.calls.written.scanner import CallScanner

PROSE = " w" * 300


def check_held(text: str, most: int = 200) -> None:
    """All of it is words, told or not, however it is cut, and never is more than that held back."""
    for is_instructed in (True, False):
        assert read_all_ways(text, is_instructed=is_instructed) == [PlainText(text)]
        assert held(text, is_instructed=is_instructed) <= most


def held(text: str, *, is_instructed: bool) -> int:
    sentinel, said, most = CallScanner(told(is_instructed)), 0, 0
    for count, letter in enumerate(text, 1):
        said += sum(len(piece.text) for piece in sentinel.feed(letter) if isinstance(piece, PlainText))
        most = max(most, count - said)
    return most
