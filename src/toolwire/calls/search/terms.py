"""Words of names and texts for the tool index: split, stemmed, and with words of the same meaning.

Stems are only compared with each other, so they need not be words. Words that mean the same count for less than the word itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[a-zA-Z]+|[0-9]+|[^\W\d_a-zA-Z]+")  # a run of letters, of digits, or of another script
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})")
_FILE_NAME = re.compile(r"(?<![\w/.])[\w-]+\.[a-z][a-z0-9]{1,4}(?![\w.])")
_LONGEST = 40  # characters of a word
_SAME = 0.5  # the weight of a word that means the same
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "called",
        "can",
        "could",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "me",
        "my",
        "of",
        "off",
        "on",
        "or",
        "our",
        "please",
        "should",
        "so",
        "some",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "us",
        "use",
        "used",
        "using",
        "via",
        "want",
        "was",
        "we",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
_GROUPS = (
    "create add new make insert open start build",
    "delete remove drop erase discard clear",
    "list show enumerate all display every",
    "get read fetch retrieve show view open load see give",
    "update edit change modify set patch adjust",
    "search find look query lookup locate",
    "write save store put",
    "send post reply publish",
    "move rename relocate transfer",
    "run execute evaluate launch trigger",
    "download export fetch",
    "upload import attach",
    "copy duplicate clone",
    "undo revert restore rollback",
    "compare diff difference between",
    "folder directory dir",
    "repo repository project",
    "ticket issue bug task",
    "picture image photo",
    "tab page",
    "website site web webpage url internet online",
    "db database",
    "member user person people",
    "column field property",
    "sheet worksheet spreadsheet workbook",
    "row record entry",
    "log logs history",
    "paper article",
    "note document",
    "info detail information metadata",
    "count number many total",
    "size big large",
    "rule constraint restrict restriction",
    "recent latest last newest",
    "route direction drive travel trip distance",
    "high height altitude elevation",
    "slow performance",
)
_IRREGULAR = {
    "written": "write", "wrote": "write", "sent": "send", "found": "find", "ran": "run", "made": "make", "frozen": "freeze",
    "froze": "freeze", "gave": "give", "given": "give", "seen": "see", "saw": "see", "read": "read", "built": "build", "bought": "buy",
    "people": "person", "indices": "index", "children": "child",
}  # fmt: skip


def name_terms(name: str) -> list[str]:
    """The stems of a name in camelCase, snake_case or any other form."""
    return [stem(word) for word in name_words(name)]


def name_words(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return [word.lower() for part in _WORD.findall(name) for word in _CAMEL.split(part)]


def text_terms(text: str) -> list[str]:
    """The stems of a text, without words that every text has."""
    return [stem(word) for word in map(str.lower, _words(text)) if word not in _STOP]


def query_terms(text: str) -> dict[str, float]:
    """The stems of a question, each with its weight, and words that mean the same with a smaller one. A file name means a file."""
    own = dict.fromkeys(text_terms(text), 1.0)
    if _FILE_NAME.search(text):
        own.setdefault("fil", 1.0)
    for term in tuple(own):
        for other in _SYNONYMS.get(term, ()):
            own.setdefault(other, _SAME)
    return own


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Without the endings of plurals and verbs."""
    word = _IRREGULAR.get(word, word[:_LONGEST])
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, other in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            base = word[: -len(ending)] + other
            return base[:-1] if not other and len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
    return word


# The first that matches counts.
_ENDINGS = (
    ("ations", "at"),
    ("ation", "at"),
    ("ating", "at"),
    ("ated", "at"),
    ("ates", "at"),
    ("ate", "at"),
    ("ies", "y"),
    ("ied", "y"),
    ("sses", "ss"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("xes", "x"),
    ("ings", ""),
    ("ing", ""),
    ("ed", ""),
    ("es", ""),
    ("ss", "ss"),
    ("us", "us"),
    ("s", ""),
    ("e", ""),
)


def _words(text: str) -> list[str]:
    return [word for part in _WORD.findall(text) for word in (_CAMEL.split(part) if not part.islower() else (part,))]


def _synonyms() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS:
        stems = [stem(word) for word in group.split()]
        for term in stems:
            found.setdefault(term, {}).update(dict.fromkeys(other for other in stems if other != term))
    return {term: tuple(others) for term, others in found.items()}


_SYNONYMS = _synonyms()
