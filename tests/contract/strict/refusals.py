"""A provider's rejection: its message and the JSON form of each dialect."""

from __future__ import annotations

import json
import re


class Refused(Exception):
    """The provider would answer 400 with this message; where is the invalid member, "" if none is named."""

    def __init__(self, words: str, where: str | None = None, code: str | None = None) -> None:
        super().__init__(words)
        self.words = words
        self.where = where
        self.code = code

    @property
    def kind(self) -> str:
        """The message without request-specific parts."""
        words = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "X", self.words)
        words = re.sub(r"(:|id|call|of|with) (X|[a-z]+_\S*)[,.]?", r"\1 X", words)
        return re.sub(r"\d+", "N", words)[:110]


def openai_body(refusal: Refused) -> bytes:
    error = {
        "message": refusal.words,
        "type": "invalid_request_error",
        "param": refusal.where,
        "code": refusal.code,
    }
    return json.dumps({"error": error}).encode()


def anthropic_body(refusal: Refused) -> bytes:
    words = f"{refusal.where}: {refusal.words}" if refusal.where else refusal.words
    error = {"type": "invalid_request_error", "message": words}
    return json.dumps({"type": "error", "error": error, "request_id": "req_011strict"}).encode()


def gemini_body(refusal: Refused) -> bytes:
    return json.dumps({"error": {"code": 400, "message": refusal.words, "status": "INVALID_ARGUMENT"}}).encode()


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())
