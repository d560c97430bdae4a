"""Strict readers of answers, one for each dialect. They accept everything and report each departure from the dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..deviations import DeviationLog
from . import chat, gemini, messages, responses
from .frames import SeenAnswer


class WireReader(NamedTuple):
    """read_body and read_stream: bytes of a whole answer or a stream. is_error: whether a JSON value is an error of the dialect."""

    read_body: Callable[[bytes, DeviationLog], SeenAnswer]
    read_stream: Callable[[bytes, DeviationLog], SeenAnswer]
    is_error: Callable[[object], bool]


READERS = {
    "chat": WireReader(chat.read_body, chat.read_stream, chat.is_error),
    "responses": WireReader(responses.read_body, responses.read_stream, responses.is_error),
    "messages": WireReader(messages.read_body, messages.read_stream, messages.is_error),
    "gemini": WireReader(gemini.read_body, gemini.read_stream, gemini.is_error),
}
