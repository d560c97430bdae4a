"""Texts as models write them, read by a Sentinel in whatever pieces are asked for; and a writer of texts whose calls are known beforehand."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from tests.calls.written.formats.native import Tools, check
from toolwire.calls.written.formats.base import CallClosed, CallGrew, Imagined, Piece, PlainText, Thought
from toolwire.calls.written.scanner import CallScanner

CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
PARIS = ("get_weather", {"city": "Paris"})
TIME = ("get_time", {})


@cache
def told(is_instructed: bool = True) -> Tools:
    return Tools(is_instructed=is_instructed)


def tag(inside: str = CALL) -> str:
    return f"<tool_call>{inside}</tool_call>"


def read(text: str, cuts: Iterable[int] = (), *, is_instructed: bool = True) -> list[Piece]:
    """All pieces, joined where they are of one kind."""
    sentinel = CallScanner(told(is_instructed))
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(text)}), len(text)]
    pieces: list[Piece] = []
    for start, end in pairwise(edges):
        pieces += sentinel.feed(text[start:end])
    return joined(pieces + sentinel.close())


def read_all_ways(text: str, *, is_instructed: bool = True) -> list[Piece]:
    """The pieces of the whole text, which are those of its letters and of it cut once at many places."""
    whole = read(text, is_instructed=is_instructed)
    check(whole)
    assert read(text, range(len(text)), is_instructed=is_instructed) == whole
    for cut in range(1, len(text), 1 + len(text) // 60):
        assert read(text, (cut,), is_instructed=is_instructed) == whole, cut
    return whole


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, PlainText | CallGrew | Thought | Imagined) and type(last) is type(piece):
            found[-1] = type(piece)(last.text + piece.text)
        else:
            found.append(piece)
    return found


def told_apart(pieces: Iterable[Piece]) -> list[Any]:
    """Words as texts, calls as pairs of name and arguments, everything else as it is; what only announces a call is left out."""
    found: list[Any] = []
    for piece in pieces:
        match piece:
            case PlainText():
                found.append(piece.text)
            case CallClosed():
                found.append((piece.name, json.loads(piece.raw)))
            case _ if type(piece).__name__ not in ("CallOpened", "CallGrew"):
                found.append(piece)
    return found


# A writer of mixed texts: each segment says what must come of it.

_LETTERS = "abcdefghij ,;:-'\"()/€éß漢字🙂👩‍🚀e\u0301ñ\u200b　"
_VALUES = (
    "Paris",
    "",
    "a </tool_call> b",
    "<tool_call>{}</tool_call>",
    'say "hi"',
    "back\\slash",
    "two\nlines\tand ```fences```",
    "{[}]",
    "日本 🙂 e\u0301",
    "\u2028",
    "<think>",
)


class Writer:
    """Texts of some segments, the expected words and calls beside them. What a text has does not depend on anything but the seed."""

    def __init__(self, seed: int, *, is_instructed: bool) -> None:
        self._chance = random.Random(seed)
        self._is_told = is_instructed
        self._text: list[str] = []
        self._expected: list[Any] = []

    def write(self) -> tuple[str, list[Any]]:
        (self._prose if self._chance.random() < 0.8 else self._block)()
        for _ in range(self._chance.randrange(1, 6)):
            self._chance.choice(_SEGMENTS)(self)
        if self._chance.random() < 0.15:
            self._unterminated()
        return "".join(self._text), self._expected

    def _words(self, text: str) -> None:
        if not text:
            return
        self._text.append(text)
        if self._expected and isinstance(self._expected[-1], str):
            self._expected[-1] += text
        else:
            self._expected.append(text)

    def _calls(self, text: str, *calls: tuple[str, Any]) -> None:
        self._text.append(text)
        self._expected += calls

    # What stands in segments.

    def _sentence(self) -> str:
        return "So " + "".join(self._chance.choices(_LETTERS, k=self._chance.randrange(3, 60))).strip()

    def _call(self) -> tuple[str, Any]:
        if self._chance.random() < 0.2:
            return TIME
        found: dict[str, Any] = {"city": self._chance.choice(_VALUES)}
        if self._chance.random() < 0.5:
            found["options"] = {"deep": [1, -2.5e3, None, True, {"x": self._chance.choice(_VALUES)}]}
        if self._chance.random() < 0.3:
            found["tags"] = self._chance.sample(_VALUES, 3)
        return "get_weather", found

    def _json(self, call: tuple[str, Any], *, is_plain: bool = False) -> str:
        """In one of the shapes that models give it."""
        name, found = call
        as_ascii = self._chance.random() < 0.5
        indent = self._chance.choice((None, None, 2))
        arguments = json.dumps(found, ensure_ascii=as_ascii, indent=indent)
        shape = 0 if is_plain else self._chance.randrange(7)
        key = self._chance.choice(("arguments", "arguments", "parameters", "args", "input"))
        if shape == 1:
            return f'{{"{key}": {arguments}, "name": "{name}"}}'
        if shape == 2:
            return json.dumps({"name": name, key: arguments})
        if shape == 3:
            return f'{{"id": "call_1", "type": "function", "function": {{"name": "{name}", "{key}": {arguments}}}}}'
        if shape == 4 and not found:
            return self._chance.choice((f'{{"name": "{name}"}}', f'{{"name": "{name}", "arguments": null}}'))
        if shape == 5:
            return f'{{"call_id": "x", "name":"{name}",\n"{key}":\n{arguments},}}'
        return f'{{"name": "{name}", "{key}": {arguments}}}'

    def _tagged(self, call: tuple[str, Any], *, is_plain: bool = False) -> str:
        inside = self._json(call, is_plain=is_plain)
        if is_plain:
            return tag(inside)
        opening = self._chance.choice(("<tool_call>", "<tool_call>\n", "<Tool_Call >", "<tool_call><tool_call>"))
        closing = self._chance.choice(
            ("</tool_call>", "\n</tool_call>", "</TOOL_CALL >", "}</tool_call>", "></tool_call>")
        )
        after = self._chance.choice(("", "", "</tool_call>", ">", "]"))
        if self._chance.random() < 0.2:
            inside = f"\n```json\n{inside}\n```\n"
        return f"{opening}{inside}{closing}{after}"

    # Segments: each is whole lines.

    def _prose(self) -> None:
        for _ in range(self._chance.randrange(1, 4)):
            self._words(f"{self._sentence()}{self._chance.choice(('.', '!', '…', ''))}\n")

    def _near_block(self) -> None:
        near = self._chance.choice(
            (
                "The tag <tool_call> opens a call.",
                "<tool_call> is the tag",
                "<tool_call> opens it, {} is in it and </tool_call> closes it",
                "**<tool_call>** is the tag",
                "So <tool_call>{not JSON at all</tool_call> is wrong",
                "A <tool_cal and <tool and < and <tool_callx>",
                "<tool_call_result> <toolcalls <think",
                "Maybe </tool_call> closes it",
                'Also {"name": "get_weather"} alone',
                "[tool_call is cut, and [tool_call] is not",
                "The <tool_result> comes later",
                'Then <tool_call>{"name": "get_weather", "arguments": {"city": 1}}</tool_call>',
                'Then <tool_call>{"name": "nobody", "arguments": {}}</tool_call>',
                "TOOL_CALL_BLOCKS and TOOL_CAL",
            )
        )
        self._words(f"{near}\n")

    def _inline_code(self) -> None:
        ticks = self._chance.choice(("`", "``"))
        self._words(f"{self._sentence()} {ticks}{self._tagged(TIME, is_plain=True)}{ticks}.\n")

    def _fence(self) -> None:
        mark = self._chance.choice(("```", "~~~", "````", "  ```", "- ```"))
        info = self._chance.choice(("", "json", " xml title"))
        inner = "```\n" if mark == "````" else ""
        closing = mark.strip(" -") + self._chance.choice(("", "`" if "`" in mark else "~", "  "))
        self._words(f"{mark}{info}\n{inner}{self._tagged(self._call(), is_plain=True)}\n{closing}\n")

    def _thinking(self) -> None:
        word = self._chance.choice(("think", "thinking", "reasoning"))
        self._words(f"<{word}>\n{self._tagged(TIME, is_plain=True)}\n```\n</{word}>\n")

    def _block(self) -> None:
        call = self._call()
        self._calls(self._tagged(call), call)
        self._words("\n")

    def _blocks(self) -> None:
        calls = [self._call() for _ in range(self._chance.randrange(2, 4))]
        written = [self._json(call) for call in calls]
        form = self._chance.randrange(3)
        if form == 0:
            self._calls(tag(f"[{', '.join(written)}]"), *calls)
        elif form == 1:
            self._calls(tag("\n".join(written)), *calls)
        else:
            self._calls("".join(map(tag, written)), *calls)
        self._words("\n")

    def _behind_sentence(self) -> None:
        call = self._call()
        self._words(f"{self._sentence()}. ")
        self._calls(self._tagged(call, is_plain=True), call)
        self._words(" And so on\n")

    def _at_line_end(self) -> None:
        call = self._call()
        self._words("Let me look: ")
        self._calls(self._tagged(call, is_plain=True), call)
        self._words("  \n")

    def _in_sentence(self) -> None:
        self._words(f"Write {self._tagged(TIME, is_plain=True)} for it, and so on\n")

    def _raw_lines(self) -> None:
        value = "two\nlines\tand more"
        self._calls(
            tag(f'{{"name": "get_weather", "arguments": {{"city": "{value}"}}}}'), ("get_weather", {"city": value})
        )
        self._words("\n")

    def _python(self) -> None:
        self._calls(
            tag("{'name': 'get_weather', 'arguments': {'city': 'Rome', 'detailed': True, 'note': None,}}"),
            ("get_weather", {"city": "Rome", "detailed": True, "note": None}),
        )
        self._words("\n")

    def _drifted(self) -> None:
        call = self._call()
        inside = self._json(call, is_plain=True)
        opening, closing = self._chance.choice(
            (
                ("<<<TOOL_CALL>>>", "<<<END_TOOL_CALL>>>"),
                ("<tool-call>", "</tool-call>"),
                ("<function_call>", "</function_call>"),
                ("[tool_call]", "[/tool_call]"),
            )
        )
        if self._is_told:
            self._calls(f"{opening}{inside}{closing}", call)
            self._words("\n")
        else:
            self._words(f"{opening}{self._json(TIME, is_plain=True)}{closing}\n")

    def _slipped(self) -> None:
        call = self._call() if self._is_told else TIME
        inside = self._json(call, is_plain=True)
        text = self._chance.choice(
            (
                f'<tool_call id="call_1">{inside}</tool_call>',
                f"< tool_call>{inside}< /tool_call>",
                f"<tool_call>\nHere it is:\n{inside}\n</tool_call>",
                f"<tool_call><think>So be it.</think>{inside}</tool_call>",
                f"**<tool_call>**\n{inside}\n**</tool_call>**",
                tag(json.dumps(inside)),
            )
        )
        if self._is_told:
            self._calls(text, call)
            self._words("\n")
        else:
            self._words(f"{text}\n")

    def _unterminated(self) -> None:
        call = self._call()
        end = self._chance.choice(("", "</tool", "\n"))
        self._calls(f"<tool_call>{self._json(call)}{end.strip()}", call)
        if not end.strip():
            self._words(end)


_SEGMENTS: tuple[Callable[[Writer], None], ...] = tuple(
    getattr(Writer, f"_{name}")
    for name in [
        "prose",
        "near_block",
        "inline_code",
        "fence",
        "thinking",
        "block",
        "block",
        "blocks",
        "behind_sentence",
        "at_line_end",
        "in_sentence",
        "raw_lines",
        "python",
        "drifted",
        "slipped",
    ]
)
