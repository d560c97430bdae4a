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
from typing import TypeAlias
from urllib.parse import quote, quote_plus

from ..telemetry.redaction import HIDDEN, is_secret
from ..wire.exact_json import encode

Spans: TypeAlias = list[tuple[int, int]]

LEAST_SECRET = 8  # anything shorter may be an ordinary word
_HIDDEN = HIDDEN.encode()
_FORMS: tuple[tuple[bytes, re.Pattern[bytes]], ...] = tuple(
    (literal, re.compile(pattern))
    for literal, pattern in (
        *((name, name + rb"[\w-]{6,}") for name in (b"sk-", b"sk_", b"pk-", b"pk_", b"rk-", b"rk_")),
        *((name, name + rb"[\w-]{6,}") for name in (b"ghp_", b"gho_", b"ghs_", b"github_pat_", b"glpat-")),
        *((name, name + rb"[\w-]{6,}") for name in (b"xoxa-", b"xoxb-", b"xoxp-", b"hf_")),
        (b"aiza", rb"AIza[\w-]{20,}"),
        (b"akia", rb"AKIA[A-Z0-9]{12,}"),
        (b"eyj", rb"eyJ[\w-]{10,}\.[\w-]{10,}[\w.-]*"),  # a JSON Web Token
        (b"bearer ", rb"(?i:bearer )[\w.~+/-]{6,}=*"),
        (b"basic ", rb"(?i:basic )[\w.~+/-]{12,}=*"),
        (b"-----begin ", rb"(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.{0,10000}?-----END [A-Z ]*PRIVATE KEY-----)"),
    )
)
# The rest of a member's name after the literal, and the colon. In a string of JSON the quotes are escaped.
_MEMBER = re.compile(rb'[\w.-]{0,40}(\\*)"\s{0,20}:\s{0,20}\1"')
_PLAIN_END = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
_NAMES = (
    *(b"api_key", b"api-key", b"apikey", b"access_key", b"accesskey", b"private_key", b"privatekey", b"secret"),
    *(b"passw", b"passphrase", b"authorization", b"credential", b"cookie"),
    *(b"access_token", b"accesstoken", b"refresh_token", b"refreshtoken", b"id_token", b"auth_token", b"authtoken"),
    *(b"session_token", b"bearer_token"),
)
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
        for literal, pattern in _FORMS:
            if literal in lowered:
                found += _matches(data, lowered, literal, pattern)
        for name in _NAMES:
            if name in lowered:
                found += _members(data, lowered, name)
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


def _matches(data: bytes, lowered: bytes, literal: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    at = lowered.find(literal)
    while at >= 0:
        is_start = at == 0 or not (data[at - 1 : at].isalnum() or data[at - 1] == 0x5F)
        # An escape such as \n in JSON ends in a letter.
        is_start = is_start or (at > 1 and data[at - 2] == 0x5C and data[at - 1 : at] in (b"n", b"t", b"r"))
        match = pattern.match(data, at) if is_start else None
        if match is not None:
            yield match.span()
        at = lowered.find(literal, at + 1 if match is None else match.end())


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
