"""Removes secrets from what was recorded, before it is stored or shown.

A secret is found in three ways: it is one that the owner configured or the client sent as its key; it has the form of a known kind of key;
or it is the text of a JSON member, header or query parameter whose name says so. Bodies are searched as bytes for a few literals first,
because most contain none: decoding each body would cost more than the rest of the recording.

A model writes a secret over several frames of a stream, so the text of a stream is searched, too; see split_secrets.py.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from urllib.parse import quote, quote_plus, unquote_plus

from ..telemetry.redaction import HIDDEN, is_secret
from ..wire.exact_json import encode
from .split_secrets import Edit, Spans, apply_edits, stream_edits, without_split_secrets

LEAST_SECRET = 8  # anything shorter may be an ordinary word
_LEAST_CLIENT_KEY = 12  # without keys any will do, so clients send ordinary words
_HIDDEN = HIDDEN.encode()
# A short text that each form contains, lower case, and how far before it the form begins. Few and short texts make the search fast.
_FORMS: tuple[tuple[bytes, int, re.Pattern[bytes]], ...] = tuple(
    (literal, offset, re.compile(pattern))
    for literal, offset, pattern in (
        (b"k-", 1, rb"[spr]k-[\w-]{6,}"),
        (b"k_", 1, rb"[spr]k_[\w-]{6,}"),
        (b"gsk_", 0, rb"gsk_\w{6,}"),
        (b"gh", 0, rb"gh[oprsu]_\w{6,}"),
        (b"github_pat_", 0, rb"github_pat_\w{6,}"),
        (b"glpat-", 0, rb"glpat-[\w-]{6,}"),
        (b"xox", 0, rb"xox[a-z]-[\w-]{6,}"),
        (b"xapp-", 0, rb"xapp-[\w-]{6,}"),
        (b"xai-", 0, rb"xai-[\w-]{16,}"),
        (b"npm_", 0, rb"npm_\w{16,}"),
        (b"pypi-", 0, rb"pypi-A[\w-]{16,}"),
        (b"tvly-", 0, rb"tvly-[\w-]{6,}"),
        (b"nvapi-", 0, rb"nvapi-[\w-]{6,}"),
        (b"pplx-", 0, rb"pplx-[\w-]{16,}"),
        (b"ya29.", 0, rb"ya29\.[\w-]{10,}"),
        (b"sg.", 0, rb"SG\.[\w-]{12,}\.[\w-]{6,}"),
        (b"hf_", 0, rb"hf_\w{6,}"),
        (b"aiza", 0, rb"AIza[\w-]{20,}"),
        (b"akia", 0, rb"AKIA[A-Z0-9]{12,}"),
        (b"asia", 0, rb"ASIA[A-Z0-9]{12,}"),
        (b"eyj", 0, rb"eyJ[\w-]{10,}\.[\w-]{10,}[\w.-]*"),  # a JSON Web Token
        (b"bearer ", 0, rb"(?i:bearer )[\w.~+/=-]{6,}"),
        (b"basic ", 0, rb"(?i:basic )[\w.~+/-]{12,}=*"),
        (
            b"-----begin ",
            0,
            rb'-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:[^"-]|-(?!----)){0,10000}(?:-----END [A-Z ]*-----)?',
        ),
    )
)
# The rest of a member's name after the literal, and the colon. In a string of JSON the quotes are escaped.
_MEMBER = re.compile(rb'[\w.-]{0,40}(\\*)"\s{0,20}:\s{0,20}\1"')
_PLAIN_END = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)
# The same with a list of texts, and the comma before each further text.
_MEMBER_LIST = re.compile(rb'[\w.-]{0,40}(\\*)"\s{0,20}:\s{0,20}\[\s{0,20}\1"')
_NEXT = re.compile(rb'\\*"\s{0,20},\s{0,20}\\*"')
# A variable of a shell or a program, and a header in a text. Without a digit the value may be a word or another variable.
_ASSIGNED = re.compile(
    rb"[\w.-]{0,40}(?:\s?=\s?|:\s?)(?:\\*[\"'])?(?:[A-Za-z]{3,10} )?((?=[\w.~+/%@!-]*\d)[\w.~+/%@!-]{6,}=*)(?![\w(\[])"
)
# Also with the escapes of JSON and of URLs. The user's name stays.
_URL_PASSWORD = re.compile(rb":(?:\\?/){2}[^\s/?#@:\"'\\<>]{0,64}:([^\s/?#\"'\\<>]{1,256})@")
_QUOTED_URL_PASSWORD = re.compile(rb"(?i:%3a%2f%2f)[^\s&%]{0,64}(?i:%3a)([^\s&%]{1,256})%40")
_PARAMETER = re.compile(rb"(?:[?&;]|\\u0026)([\w.%-]{2,64})=((?!\[hidden)[^&\s\"'\\#<>\])}]{4,})")
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
_TOKEN = b'token"', b'token\\"', b'"auth"', b'\\"auth\\"'
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
        return apply_edits(data, ends, [(start, end, _HIDDEN) for start, end in self.spans(data, more)])

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
        found += _url_secrets(data)
        return _merged(found) if found else found

    def header(self, name: str, value: str, more: str = "") -> str:
        """The value to show. The scheme of an authorization stays, which tells how the client authenticates."""
        if not is_secret(name):
            return self.text(value, more)
        scheme, blank, _ = value.partition(" ")
        return f"{scheme} {HIDDEN}" if blank and name.lower().endswith("authorization") else HIDDEN

    def query(self, query: str, more: str = "") -> str:
        pairs = [pair.partition("=") for pair in query.split("&")]
        shown = [
            f"{name}{equals}{HIDDEN if value and is_secret(unquote_plus(name)) else value}"
            for name, equals, value in pairs
        ]
        return self.text("&".join(shown), more)


class FlowRedaction:
    """For the texts of one flow. Most flows contain no secret outside of the headers that are hidden anyway; that is found out once, for
    all texts together. more: a secret that is known for this flow only."""

    def __init__(self, redaction: WireRedaction, more: str, texts: Iterable[bytes]) -> None:
        self._redaction = redaction
        self._more = more if len(more) >= _LEAST_CLIENT_KEY else ""
        self._find = partial(redaction.spans, more=self._more)
        self._is_clean = not self._find(b"\n".join(texts))
        self._edits: dict[bytes, list[Edit]] = {}

    def clean(self, data: bytes) -> bytes:
        return data if self._is_clean else self._redaction.clean(data, self._more)

    def text(self, text: str) -> str:
        return text if self._is_clean or not text else self._redaction.text(text, self._more)

    def reply(self, data: bytes, ends: list[int]) -> tuple[bytes, list[int]]:
        """What was received in these chunks, perhaps as a stream."""
        if not self._is_clean:
            data, ends = self._redaction.body(data, ends, self._more)
        edits = self._edits.get(data)
        if edits is None:  # the client often gets the same bytes as the gateway
            edits = self._edits[data] = stream_edits(data, self._find)
        return apply_edits(data, ends, edits)

    def messages(self, messages: Sequence[bytes]) -> list[bytes]:
        """JSON texts, one after the other, each of which may have a piece of a text."""
        cleaned = [self.clean(message) for message in messages]
        changed = without_split_secrets(cleaned, self._find)
        return [changed.get(place, message) for place, message in enumerate(cleaned)]

    def header(self, name: str, value: str) -> str:
        return self._redaction.header(name, value, self._more) if is_hidden(name) else self.text(value)

    def query(self, query: str) -> str:
        return self._redaction.query(query, self._more)


@lru_cache(maxsize=1000)
def is_hidden(name: str) -> bool:
    return is_secret(name)


def _variants(secrets: Iterable[str]) -> list[bytes]:
    """Each secret in the usual encodings. JSON may have any character escaped: encoders do so with those of HTML and URLs."""
    found: dict[bytes, None] = {}
    for secret in secrets:
        if len(secret) >= LEAST_SECRET:
            data, text = secret.encode("utf-8", "replace"), encode(secret)[1:-1]
            for form in (data, text, quote(secret, safe="").encode(), quote_plus(secret).encode()):
                found[form] = None
            found[text.replace(b"/", b"\\/")] = None
            for digits in ("%04x", "%04X"):
                found["".join([f"\\u{digits % ord(one)}" if one in "+&<>'" else one for one in secret]).encode()] = None
            for offset in range(3):
                found.update(dict.fromkeys(_inside_base64(data, offset)))
    return sorted(found, key=len, reverse=True)  # one may be a prefix of another


def _inside_base64(data: bytes, offset: int) -> Iterator[bytes]:
    """How this text looks inside a longer one, such as the user and password of Basic authentication: without the characters that it
    shares with what is around it. offset: of its first byte in a group of three."""
    start, end = (offset * 8 + 5) // 6, (offset + len(data)) * 8 // 6
    for form in (b64encode, urlsafe_b64encode):
        yield form(bytes(offset) + data)[start:end]


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
        end = after = at + len(name)
        if (match := _MEMBER.match(data, after)) is not None:
            end = _value_end(data, match.end(), len(match[1]))
            if end > match.end():
                yield match.end(), end
        elif (match := _MEMBER_LIST.match(data, after)) is not None:
            next_one: re.Match[bytes] | None = match
            while next_one is not None:
                end = _value_end(data, next_one.end(), len(match[1]))
                if end > next_one.end():
                    yield next_one.end(), end
                next_one = _NEXT.match(data, end)
        elif (match := _ASSIGNED.match(data, after)) is not None:
            end = match.end()
            yield match.span(1)
        at = lowered.find(name, end)


def _url_secrets(data: bytes) -> Iterator[tuple[int, int]]:
    """Passwords and parameters of URLs in a text."""
    if b"@" in data:
        yield from (match.span(1) for match in _URL_PASSWORD.finditer(data))
    if b"%40" in data:
        yield from (match.span(1) for match in _QUOTED_URL_PASSWORD.finditer(data))
    if b"=" in data:
        for match in _PARAMETER.finditer(data):
            name = unquote_plus(match[1].decode("ascii", "replace"))
            if name == "sig" or is_hidden(name):
                yield match.span(2)


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
        member = _MEMBER.match(data, at + len(name.rstrip(b'\\"')))
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
