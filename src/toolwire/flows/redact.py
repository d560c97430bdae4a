"""Removes secrets from what was recorded, before it is stored or shown.

A secret is found in three ways: it is one that the owner configured or the client sent as its key; it has the form of a known kind of key;
or it is the text of a JSON member, header or query parameter whose name says so. Bodies are searched as bytes for a few literals first,
because most contain none: decoding each body would cost more than the rest of the recording.

A secret that a model writes over several frames of a stream is not found by its form, only rebuilt text shows it; see docs/flows.md.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from ..telemetry.redaction import HIDDEN, is_secret
from ..wire.exact_json import encode

Spans: TypeAlias = list[tuple[int, int]]

LEAST_SECRET = 8  # anything shorter may be an ordinary word
_LEAST_CLIENT_KEY = 12  # without keys any will do, so clients send ordinary words
_HIDDEN = HIDDEN.encode()
# A short text that each form contains, lower case, and how far before it the form begins. Few and short texts make the search fast.
_FORMS: tuple[tuple[bytes, int, re.Pattern[bytes]], ...] = tuple(
    (literal, offset, re.compile(pattern))
    for literal, offset, pattern in (
        (b"k-", 1, rb"[spr]k-[\w-]{6,}"),
        (b"k_", 1, rb"[spr]k_[\w-]{6,}"),
        (b"gh", 0, rb"gh[pos]_\w{6,}"),
        (b"github_pat_", 0, rb"github_pat_\w{6,}"),
        (b"glpat-", 0, rb"glpat-[\w-]{6,}"),
        (b"xox", 0, rb"xox[abp]-[\w-]{6,}"),
        (b"hf_", 0, rb"hf_\w{6,}"),
        (b"aiza", 0, rb"AIza[\w-]{20,}"),
        (b"akia", 0, rb"AKIA[A-Z0-9]{12,}"),
        (b"eyj", 0, rb"eyJ[\w-]{10,}\.[\w-]{10,}[\w.-]*"),  # a JSON Web Token
        (b"bearer ", 0, rb"(?i:bearer )[\w.~+/-]{6,}=*"),
        (b"basic ", 0, rb"(?i:basic )[\w.~+/-]{12,}=*"),
        (b"-----begin ", 0, rb"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.{0,10000}?-----END [A-Z ]*PRIVATE KEY-----)"),
    )
)
# The rest of a member's name after the literal, and the colon. In a string of JSON the quotes are escaped.
_MEMBER = re.compile(rb'[\w.-]{0,40}(\\*)"\s{0,20}:\s{0,20}\1"')
_PLAIN_END = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
# By a part of the name: most bodies have none of these.
_NAMES: dict[bytes, tuple[bytes, ...]] = {
    b"key": (b"api_key", b"api-key", b"apikey", b"access_key", b"accesskey", b"private_key", b"privatekey"),
    b"secret": (b"secret",),
    b"passw": (b"passw",),
    b"passphrase": (b"passphrase",),
    b"authorization": (b"authorization",),
    b"credential": (b"credential",),
    b"cookie": (b"cookie",),
    b"token": (
        *(b"access_token", b"accesstoken", b"refresh_token", b"refreshtoken", b"id_token", b"auth_token", b"authtoken"),
        *(b"session_token", b"bearer_token"),
    ),
}
# Log probabilities have a member "token" for each piece of text, so a token is only long text without blanks.
_TOKEN = b'token"', b'token\\"'
_TOKEN_VALUE = re.compile(rb"[\w.~+/=-]{16,}")
_PAGES = re.compile(rb"(?:page|next|sync|continuation)_?$")


class WireRedaction:
    """known: secrets to remove wherever they occur, in any of the usual encodings."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = _variants(known)

    def clean(self, data: bytes, more: str = "") -> bytes:
        """more: another known secret, for this text only."""
        spans = self.spans(data, more)
        return _replace(data, spans) if spans else data

    def text(self, text: str, more: str = "") -> str:
        return self.clean(text.encode("utf-8", "replace"), more).decode("utf-8", "replace")

    def body(self, data: bytes, ends: list[int], more: str = "") -> tuple[bytes, list[int]]:
        """The data of several chunks, each of which ends at one of these offsets."""
        spans = self.spans(data, more)
        if not spans:
            return data, ends
        return _replace(data, spans), [_moved(end, spans) for end in ends]

    def spans(self, data: bytes, more: str = "") -> Spans:
        """Where the secrets are, in order and without overlap."""
        known = self._known if not more else [*self._known, *_variants([more])]
        found = [span for secret in known if secret in data for span in _places(data, secret)]
        lowered = data.lower()
        for literal, offset, pattern in _FORMS:
            if literal in lowered:
                found += _matches(data, lowered, literal, offset, pattern)
        for part, names in _NAMES.items():
            if part in lowered:
                found += [span for name in names for span in _members(data, lowered, name)]
        for name in _TOKEN:
            if name in lowered:
                found += _tokens(data, lowered, name)
        return _merged(found) if found else found

    def header(self, name: str, value: str, more: str = "") -> str:
        """The value to show. The scheme of an authorization stays, which tells how the client authenticates."""
        if not is_secret(name):
            return self.text(value, more)
        scheme, blank, _ = value.partition(" ")
        return f"{scheme} {HIDDEN}" if blank and name.lower().endswith("authorization") else HIDDEN

    def query(self, query: str, more: str = "") -> str:
        pairs = [pair.partition("=") for pair in query.split("&")]
        shown = [f"{name}{equals}{HIDDEN if is_secret(name) and value else value}" for name, equals, value in pairs]
        return self.text("&".join(shown), more)


class FlowRedaction:
    """For the texts of one flow. Most flows contain no secret outside of the headers that are hidden anyway; that is found out once, for
    all texts together. more: a secret that is known for this flow only."""

    def __init__(self, redaction: WireRedaction, more: str, texts: Iterable[bytes]) -> None:
        self._redaction = redaction
        self._more = more if len(more) >= _LEAST_CLIENT_KEY else ""
        self._is_clean = not redaction.spans(b"\n".join(texts), self._more)

    def clean(self, data: bytes) -> bytes:
        return data if self._is_clean else self._redaction.clean(data, self._more)

    def text(self, text: str) -> str:
        return text if self._is_clean or not text else self._redaction.text(text, self._more)

    def body(self, data: bytes, ends: list[int]) -> tuple[bytes, list[int]]:
        return (data, ends) if self._is_clean else self._redaction.body(data, ends, self._more)

    def header(self, name: str, value: str) -> str:
        return self._redaction.header(name, value, self._more) if is_hidden(name) else self.text(value)

    def query(self, query: str) -> str:
        return self._redaction.query(query, self._more)


@lru_cache(maxsize=1000)
def is_hidden(name: str) -> bool:
    return is_secret(name)


def _variants(secrets: Iterable[str]) -> list[bytes]:
    found: dict[bytes, None] = {}
    for secret in secrets:
        if len(secret) >= LEAST_SECRET:
            data = secret.encode("utf-8", "replace")
            for form in (data, encode(secret)[1:-1], quote(secret, safe="").encode(), quote_plus(secret).encode()):
                found[form] = None
            found[b64encode(data)] = None
    return sorted(found, key=len, reverse=True)  # one may be a prefix of another


def _places(data: bytes, secret: bytes) -> Iterator[tuple[int, int]]:
    at = data.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = data.find(secret, at + len(secret))


def _matches(
    data: bytes, lowered: bytes, literal: bytes, offset: int, pattern: re.Pattern[bytes]
) -> Iterator[tuple[int, int]]:
    at = lowered.find(literal)
    while at >= 0:
        start = at - offset
        match = pattern.match(data, start) if start >= 0 and _is_start(data, start) else None
        if match is not None:
            yield match.span()
        at = lowered.find(literal, at + 1 if match is None else match.end())


def _is_start(data: bytes, at: int) -> bool:
    """Whether a word begins here. An escape such as \\n in JSON ends in a letter."""
    before = data[at - 1 : at] if at else b" "
    if not (before.isalnum() or before == b"_"):
        return True
    return at > 1 and data[at - 2] == 0x5C and before in (b"n", b"t", b"r")


def _members(data: bytes, lowered: bytes, name: bytes) -> Iterator[tuple[int, int]]:
    at = lowered.find(name)
    while at >= 0:
        match = _MEMBER.match(data, at + len(name))
        end = at + len(name)
        if match is not None:
            end = _value_end(data, match.end(), len(match[1]))
            if end > match.end():
                yield match.end(), end
        at = lowered.find(name, end)


def _value_end(data: bytes, start: int, escapes: int) -> int:
    """Where the string that starts here ends; escapes: how many backslashes its quotes have."""
    if not escapes:
        match = _PLAIN_END.match(data, start)
        return match.end() if match is not None else start
    quote_mark = b"\\" * escapes + b'"'
    end = data.find(quote_mark, start)
    while end > start and data[end - 1] == 0x5C:
        end = data.find(quote_mark, end + 1)
    return end if end >= 0 else len(data)


def _tokens(data: bytes, lowered: bytes, name: bytes) -> Iterator[tuple[int, int]]:
    at = lowered.find(name)
    while at >= 0:
        member = _MEMBER.match(data, at + len(b"token"))
        value = _TOKEN_VALUE.match(data, member.end()) if member is not None else None
        if value is not None and not _PAGES.search(lowered[max(0, at - 20) : at]):
            yield value.span()
        at = lowered.find(name, at + len(name))


def _merged(spans: Spans) -> Spans:
    merged: Spans = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _replace(data: bytes, spans: Spans) -> bytes:
    pieces, at = list[bytes](), 0
    for start, end in spans:
        pieces += (data[at:start], _HIDDEN)
        at = end
    return b"".join([*pieces, data[at:]])


def _moved(offset: int, spans: Spans) -> int:
    """Where this offset is after the replacement; one inside a secret moves to its end."""
    shift = 0
    for start, end in spans:
        if offset <= start:
            break
        if offset < end:
            return start + shift + len(_HIDDEN)
        shift += len(_HIDDEN) - (end - start)
    return offset + shift
