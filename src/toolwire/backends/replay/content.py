"""What a request is about, in a form that can be compared: without ids, dates, temporary folders and other values of one run.

Two requests with the same content are the same request, also in different dialects.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from ...calls.tools.kinds import to_functions
from ...types import Media, Message, Request, Text, ToolCall, ToolResult
from ...wire.exact_json import encode, object_of

MatchMode: TypeAlias = Literal["exact", "conversation"]

_VOLATILE = (
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "UUID"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "DATE"),
    (
        re.compile(
            r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2},? (?:\d\d:\d\d:\d\d )?(?:UTC )?\d{4}"
        ),
        "DATE",
    ),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "TIME"),
    (re.compile(r"\b1[6-9]\d{8}(?:\d{3})?\b"), "TIME"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds?)\b"), "DURATION"),
    (re.compile(r"(?:/private)?/(?:tmp|var/folders)/(?:[^\s\"'`<>()\\/]+/)*"), "/TMP/"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "HEX"),
    (
        re.compile(r"(?<=\b[iI][dD][:=] )[0-9a-f]{4,}\b"),
        "HEX",
    ),  # Codex numbers the outputs of commands: "Chunk ID: 27d959"
)
_BLANK = re.compile(r"\s+")
_NOTE = re.compile(
    r"<system>\n(.*?)\n</system>", re.DOTALL
)  # an instruction where the dialect allows only messages of the user
_SHOWN = 80


class ContentItem(NamedTuple):
    """kind: system, user, assistant, call or result."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} {self.text[:_SHOWN]!r}"


class RequestContent(NamedTuple):
    instructions: str
    items: tuple[ContentItem, ...]
    tools: tuple[str, ...]


def content_of(request: Request) -> RequestContent:
    """All kinds of tools and of their calls count as functions, which is what a request of another dialect has."""
    request = to_functions(request).request
    instructions: list[str] = []
    items: list[ContentItem] = []
    for message in request.messages:
        for item in _items(message):
            if item.kind == "system":
                instructions.append(item.text)
            elif items and items[-1].kind == item.kind in ("user", "assistant"):
                items[-1] = ContentItem(item.kind, f"{items[-1].text} {item.text}".strip())
            else:
                items.append(item)
    names = tuple(sorted({tool.label or tool.name for tool in request.tools if tool.kind != "hosted"}))
    return RequestContent(" ".join(instructions), tuple(items), names)


def stable_text(text: str) -> str:
    """The text without values that differ between two runs of the same program."""
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    return _BLANK.sub(" ", text).strip()


def is_same(recorded: RequestContent, received: RequestContent, mode: MatchMode, *, is_partial: bool) -> bool:
    """is_partial: the recorded request has only the new items of its conversation."""
    items = received.items[-len(recorded.items) :] if is_partial and recorded.items else received.items
    if recorded.items != items:
        return False
    if mode == "conversation":
        return True
    return is_partial or (recorded.instructions, recorded.tools) == (received.instructions, received.tools)


def difference(recorded: RequestContent, received: RequestContent) -> str:
    """The first difference, as a sentence without its end."""
    for number, (old, new) in enumerate(zip(recorded.items, received.items, strict=False), 1):
        if old != new:
            place = _first_change(old.text, new.text) if old.kind == new.kind else 0
            return f"message {number} differs: recorded {_around(old, place)}, received {_around(new, place)}"
    if len(recorded.items) != len(received.items):
        longer, who = (
            (received.items, "received") if len(received.items) > len(recorded.items) else (recorded.items, "recorded")
        )
        extra = longer[min(len(recorded.items), len(received.items))]
        return f"it has {len(recorded.items)} messages, the request {len(received.items)}; only {who}: {extra}"
    if recorded.tools != received.tools:
        missing, added = set(recorded.tools) - set(received.tools), set(received.tools) - set(recorded.tools)
        return f"the tools differ: missing {', '.join(sorted(missing)) or 'none'}, added {', '.join(sorted(added)) or 'none'}"
    place = _first_change(recorded.instructions, received.instructions)
    old, new = ContentItem("system", recorded.instructions), ContentItem("system", received.instructions)
    return f"the instructions differ: recorded {_around(old, place)}, received {_around(new, place)}"


def likeness(recorded: RequestContent, received: RequestContent) -> tuple[int, int]:
    """Larger for entries that are closer: equal items at the start, then equal characters of the first different one."""
    pairs = list(zip(recorded.items, received.items, strict=False))
    equal = next((number for number, (old, new) in enumerate(pairs) if old != new), len(pairs))
    if equal == len(pairs):
        return equal, -abs(len(recorded.items) - len(received.items))
    old, new = pairs[equal]
    return equal, _first_change(old.text, new.text) if old.kind == new.kind else 0


def _items(message: Message) -> list[ContentItem]:
    role = message.role if message.role in ("user", "assistant") else "system"
    items = []
    for part in message.parts:
        match part:
            case Text() if role == "user":
                items += [ContentItem("system", stable_text(note)) for note in _NOTE.findall(part.text)]
                if text := stable_text(_NOTE.sub("", part.text)):
                    items.append(ContentItem(role, text))
            case Text() if part.text.strip():
                items.append(ContentItem(role, stable_text(part.text)))
            case ToolCall():
                given = part.args if part.args is not None else object_of(part.raw)
                arguments = part.raw if given is None else encode(dict(sorted(given.items()))).decode()
                items.append(ContentItem("call", f"{part.name} {stable_text(arguments)}"))
            case ToolResult():
                text = " ".join(inner.text for inner in part.parts if isinstance(inner, Text))
                items.append(ContentItem("result", stable_text(text)))
            case Media():
                items.append(ContentItem(role, f"{part.kind} {(part.data or part.url or part.file_id or '')[:64]}"))
    return items


def _first_change(old: str, new: str) -> int:
    return next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _around(item: ContentItem, place: int) -> str:
    start = max(0, place - _SHOWN // 4)
    mark = "..." if start else ""
    return f"{item.kind} {mark}{item.text[start : start + _SHOWN]!r}"
