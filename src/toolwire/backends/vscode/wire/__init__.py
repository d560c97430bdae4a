"""VS Code's language models over the bridge of our extension, without I/O: the frames, and what they mean in both directions."""

from __future__ import annotations

from .answer_in import AnswerDecoder
from .answer_out import PartsEncoder
from .errors import error_of, needs_consent, no_model, no_window, refused, window_lost
from .frames import MAX_FRAME, Bad, decode_gateway, decode_window, encode
from .models import find, lent, listing
from .names import Names
from .request_in import request_of
from .request_out import Asked, asked
from .shapes import NAME, VERSION
from .usage import sends_usage

__all__ = [
    "MAX_FRAME",
    "NAME",
    "VERSION",
    "AnswerDecoder",
    "Asked",
    "Bad",
    "Names",
    "PartsEncoder",
    "asked",
    "decode_gateway",
    "decode_window",
    "encode",
    "error_of",
    "find",
    "lent",
    "listing",
    "needs_consent",
    "no_model",
    "no_window",
    "refused",
    "request_of",
    "sends_usage",
    "window_lost",
]
