"""Flat names for tools, and back: every tool of a request gets one name that any back end takes, and no other tool has.

A name is legal if it has letters, digits, _ and - only, and at most 64 of them. Of others the model still reads what it can: the
end, where a tool's own name stands, stays before the namespace does. Calls of earlier turns get the names that their tools have now.
"""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

from ...types import Tool, ToolCall

LONGEST = 64  # every back end takes so many letters
_OWN = 48  # letters of a tool's own name that stay whole
_NUMBERED = 56  # what stays of a name that needs a number behind it
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_SEPARATORS = re.compile(r"[\W_]+")
_INVENTED = re.compile(r"^(?:functions|function|tools|tool|default_api)[.:/_]+")


def is_legal(name: str, longest: int = LONGEST) -> bool:
    """Asked for every call of every request, and the same few names each time."""
    return len(name) <= longest and _has_legal_letters(name)


@lru_cache(maxsize=4096)
def _has_legal_letters(name: str) -> bool:
    return bool(name) and _ILLEGAL.search(name) is None


def without_prefix(name: str) -> str:
    """Without what some models put before a name."""
    return _INVENTED.sub("", name)


def fit_name(name: str, longest: int = LONGEST) -> str:
    """A legal name for it; one that had to be shortened carries a hash of the whole."""
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
    """Which tool of the client a flat name means; a model that drops or changes a prefix is understood where it is clear.

    longest: so many letters the back end takes; 0 where a tool that needs no other name keeps its own, legal or not.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._is_free = not longest
        self._longest = longest or LONGEST
        self._by_label: dict[str, Tool] = {}
        self._labels: dict[tuple[bool, str, str], str] = {}
        self._wanted: dict[tuple[bool, str], str] = {}  # by the flat name as it would be without limits
        self._numbers: dict[str, int] = {}
        self._loose: dict[str, Tool | None] | None = None

    def add(self, tool: Tool) -> str:
        """The flat name of this tool, one that no other has."""
        wanted = tool.label or tool.name
        label = self._unique(wanted if self._is_free and wanted == tool.name else self._fitted(wanted))
        is_typed = tool.kind == "typed"
        self._by_label[label] = tool
        self._labels.setdefault((is_typed, tool.namespace, tool.name), label)
        self._wanted.setdefault((is_typed, wanted), label)
        self._loose = None
        return label

    def label(self, call: ToolCall) -> str:
        """The flat name of a past call's tool, one that is offered or one that no longer is."""
        known = self._labels.get((call.kind == "typed", call.namespace, call.name))
        return known or self._unknown(f"{call.namespace}__{call.name}" if call.namespace else call.name)

    def chosen(self, name: str, *, is_typed: bool) -> str:
        """The flat name of a tool that the client chooses by its own name or flat name."""
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
        bare = without_prefix(label)
        return self._by_label.get(bare) or self._loose.get(_spelled(bare)) or self._loose.get(_spelled(label))

    def _unknown(self, name: str) -> str:
        return name if self._is_free else self._fitted(name)

    def _fitted(self, name: str) -> str:
        return fit_name(name, self._longest)

    def _unique(self, wanted: str) -> str:
        label = wanted
        while label in self._by_label:
            number = self._numbers[wanted] = self._numbers.get(wanted, 1) + 1
            label = f"{wanted[:_NUMBERED]}_{number}"
        return label

    def _spellings(self) -> dict[str, Tool | None]:
        """Other ways to write a name; None where two tools share one."""
        found: dict[str, Tool | None] = {}
        for label, tool in self._by_label.items():
            for spelling in {label, tool.label or tool.name, tool.name, f"{tool.namespace}_{tool.name}"}:
                key = _spelled(spelling)
                found[key] = None if key in found and found[key] is not tool else tool
        return found


def _spelled(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_").lower()
