"""Flat names for tools, and back: every tool of a request gets a unique name that any back end accepts.

A legal name has only letters, digits, _ and -, and at most 64 of them. Shortening keeps the end, where the tool's own name is, rather
than the namespace. Calls of earlier turns get the current names of their tools.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

from ...types import Tool, ToolCall

LONGEST = 64  # every back end accepts this length
_OWN = 48  # a tool's own name up to this length is not shortened
_NUMBERED = 56  # length of a name before its number
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATORS = re.compile(r"[\W_]+")
_RECIPIENT = re.compile(r"(?:^|[\s>])to=([^\s<]+)")
_NUMBER = re.compile(r":\d{1,4}$")
_INVENTED = re.compile(r"^(?:functions|function|tools|tool|default_api)[.:/_]+")


def is_legal(name: str, longest: int = LONGEST) -> bool:
    """Called for every call of every request, with the same few names; so the letters are checked once."""
    return len(name) <= longest and has_legal_letters(name)


@lru_cache(maxsize=4096)
def has_legal_letters(name: str) -> bool:
    return bool(name) and _ILLEGAL.search(name) is None


def without_prefix(name: str) -> str:
    """Without a prefix that models invent."""
    return _INVENTED.sub("", name)


def fit_name(name: str, longest: int = LONGEST) -> str:
    """A legal form of the name; a shortened one ends in a hash of the whole."""
    if is_legal(name, longest):
        return name
    plain = _ILLEGAL.sub("_", name)
    if len(name) <= longest and plain.strip("_-"):
        return plain
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    start, _, own = plain.rpartition("__")
    if not start or len(own) > _OWN or not own:
        return f"{plain[: longest - len(mark) - 1]}_{mark}"
    return f"{start[: longest - len(mark) - len(own) - 3]}_{mark}__{own}"


class ToolNames:
    """Maps flat names to the client's tools. Names with a dropped or changed prefix are accepted where only one tool matches.

    longest: the longest name that the back end accepts; 0 where tools keep their own names, legal or not.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._is_free = not longest
        self._longest = longest or LONGEST
        self._by_label: dict[str, Tool] = {}
        self._labels: dict[tuple[bool, str, str], str] = {}
        self._wanted: dict[tuple[bool, str], str] = {}  # by the flat name before it was shortened
        self._numbers: dict[str, int] = {}
        self._loose: dict[str, Tool | None] | None = None

    def add(self, tool: Tool) -> str:
        """The unique flat name of this tool."""
        wanted = tool.label or tool.name
        label = self._unique(wanted if self._is_free and wanted == tool.name else self._legal(wanted))
        is_typed = tool.kind == "typed"
        self._by_label[label] = tool
        self._labels.setdefault((is_typed, tool.namespace, tool.name), label)
        self._wanted.setdefault((is_typed, wanted), label)
        self._loose = None
        return label

    def label(self, call: ToolCall) -> str:
        """The flat name of a past call's tool, also of one that is no longer offered."""
        known = self._labels.get((call.kind == "typed", call.namespace, call.name))
        return known or self._unknown(f"{call.namespace}__{call.name}" if call.namespace else call.name)

    def chosen(self, name: str, *, is_typed: bool) -> str:
        """The flat name of a tool in the client's tool_choice, given by its own or flat name."""
        known = self._wanted.get((is_typed, name)) or self._wanted.get((not is_typed, name))
        if known is None and (tool := self.tool(name)) is not None:
            known = self._labels[(tool.kind == "typed", tool.namespace, tool.name)]
        return known or self._unknown(name)

    def tool(self, label: str) -> Tool | None:
        found = self._by_label.get(label)
        if found is not None:
            return found
        if self._loose is None:
            self._loose = self._spellings()
        bare = without_prefix(_without_markup(label))
        if (found := self._by_label.get(bare)) is not None:
            return found
        keys = (_spelled(bare), _spelled(label), _squeezed(bare))
        return next((found for key in keys if (found := self._loose.get(key)) is not None), None)

    def _unknown(self, name: str) -> str:
        return name if self._is_free else self._legal(name)

    def _legal(self, name: str) -> str:
        return fit_name(name, self._longest)

    def _unique(self, wanted: str) -> str:
        label = wanted
        while label in self._by_label:
            number = self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            label = f"{wanted[:_NUMBERED]}_{number}"
        return label

    def _spellings(self) -> dict[str, Tool | None]:
        """Tools by normalized name; None where two tools share one."""
        found: dict[str, Tool | None] = {}
        for label, tool in self._by_label.items():
            for spelling in {label, tool.label or tool.name, tool.name, f"{tool.namespace}_{tool.name}"}:
                for key in (_spelled(spelling), _squeezed(spelling)):
                    found[key] = None if key in found and found[key] is not tool else tool
        return found


def _without_markup(name: str) -> str:
    """Without what servers leave of a chat template: <|channel|>commentary of harmony, and the number of Kimi's ids."""
    recipient = _RECIPIENT.search(name)
    name = recipient[1] if recipient is not None else name.partition("<|")[0]
    return _NUMBER.sub("", name.strip())


def _squeezed(name: str) -> str:
    """Without separators and capitals, with a mark that no other spelling has."""
    return "=" + _SEPARATORS.sub("", name).lower()


def _spelled(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").lower()
