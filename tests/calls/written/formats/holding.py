"""How far the words lag behind a text that comes letter by letter."""

from __future__ import annotations

from tests.calls.speaking import read_all_ways, told
from toolwire.calls.written.formats.base import Words
from toolwire.calls.written.scanner import Sentinel

PROSE = " w" * 300


def check_held(text: str, most: int = 200) -> None:
    """All of it is words, told or not, however it is cut, and never is more than that held back."""
    for is_told in (True, False):
        assert read_all_ways(text, is_told=is_told) == [Words(text)]
        assert held(text, is_told=is_told) <= most


def held(text: str, *, is_told: bool) -> int:
    sentinel, said, most = Sentinel(told(is_told)), 0, 0
    for count, letter in enumerate(text, 1):
        said += sum(len(piece.text) for piece in sentinel.feed(letter) if isinstance(piece, Words))
        most = max(most, count - said)
    return most
