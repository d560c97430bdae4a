"""What goes wrong with a server, in sentences that a model and a person can use."""

from __future__ import annotations

from ...errors import quote
from .target import Target

_STDERR = 400  # characters of what the server said last


class ServerFault(Exception):
    """The server could not do what it was asked; is_over: its session is of no more use."""

    def __init__(self, sentence: str, *, is_over: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.is_over = is_over


def server(target: Target) -> str:
    """How the server is called in a sentence."""
    return f"MCP server {quote(target.name)}"


def last_words(target: Target, stderr: str) -> str:
    """The end of what it wrote to standard error, as a sentence of its own; "" where it said nothing."""
    text = " | ".join(line.strip() for line in stderr.splitlines() if line.strip())
    if not text:
        return ""
    hidden = target.told(text)
    return f" It last said: {quote(hidden[-_STDERR // 2 :])}."


def foreign(target: Target, words: object) -> str:
    """Words of the server or the SDK inside a sentence of ours."""
    return quote(target.told(" ".join(str(words)[:2000].split())))
