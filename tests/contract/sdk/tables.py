"""The tables of docs/dialects that list every type of the official SDKs, and what the SDKs have that they lack."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from anthropic.types.beta import (
    BetaContentBlock,
    BetaContentBlockParam,
    BetaMessage,
    BetaMessageParam,
    BetaRawContentBlockDelta,
    BetaRawMessageStreamEvent,
    BetaSystemMessageParam,
    BetaToolUnionParam,
    BetaUsage,
)
from anthropic.types.beta.message_create_params import MessageCreateParamsBase
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionContentPartParam,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
    ChatCompletionToolUnionParam,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import (
    Response,
    ResponseInputContent,
    ResponseInputContentParam,
    ResponseInputItem,
    ResponseInputItemParam,
    ResponseInputParam,
    ResponseOutputItem,
    ResponseStreamEvent,
    Tool,
    ToolParam,
)
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from tests.contract.sdk import google, requests
from tests.contract.sdk.types import all_members, members, objects, variants

PAGES = Path(__file__).resolve().parents[3] / "docs" / "dialects"
OTHERS = {
    "chat": ("responses", "messages", "gemini"),
    "responses": ("chat", "messages", "gemini"),
    "messages": ("chat", "responses", "gemini"),
    "gemini": ("chat", "responses", "messages"),
}
_TABLE = re.compile(r"^### (?P<heading>.+?)\n\n?(?P<text>(?:(?!^#).*\n?)*)", re.MULTILINE)
_NAMES = re.compile(r"`([^`]+)`")


class Table(NamedTuple):
    """What one table lists: the variants of a union, or with is_fields the members of one type. place: puts a variant into a
    request, where the table says what becomes of it."""

    dialect: str
    heading: str
    type: Any
    place: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    is_fields: bool = False

    @property
    def name(self) -> str:
        return f"{self.dialect}: {self.heading}"


class Row(NamedTuple):
    members: frozenset[str]
    words: tuple[str, ...]  # for each of the other dialects


TABLES = [
    Table("responses", "Members of a request", ResponseCreateParamsBase, None, True),
    Table("responses", "Input items", ResponseInputItemParam, requests.item),
    Table("responses", "Input parts", ResponseInputContentParam, requests.response_part),
    Table("responses", "Tools", ToolParam, requests.response_tool),
    Table("responses", "Output items", ResponseOutputItem),
    Table("responses", "Members of a response", Response, None, True),
    Table("responses", "Events", ResponseStreamEvent),
    Table("messages", "Members of a request", MessageCreateParamsBase, None, True),
    Table("messages", "Members of a message", BetaMessageParam | BetaSystemMessageParam),
    Table("messages", "Blocks", BetaContentBlockParam, requests.block),
    Table("messages", "Tools", BetaToolUnionParam, requests.messages_tool),
    Table("messages", "Blocks of an answer", BetaContentBlock),
    Table("messages", "Members of an answer", BetaMessage, None, True),
    Table("messages", "Events", BetaRawMessageStreamEvent),
    Table("messages", "Deltas", BetaRawContentBlockDelta),
    Table("messages", "Usage", BetaUsage, None, True),
    Table("chat", "Members of a request", CompletionCreateParamsBase, None, True),
    Table("chat", "Messages", ChatCompletionMessageParam, requests.chat_message),
    Table("chat", "Parts", ChatCompletionContentPartParam, requests.chat_part),
    Table("chat", "Tools", ChatCompletionToolUnionParam, requests.chat_tool),
    Table("chat", "Members of an answer", ChatCompletion, None, True),
    Table("chat", "Members of the answered message", ChatCompletionMessage, None, True),
    Table("chat", "Members of a chunk", ChatCompletionChunk, None, True),
    Table("gemini", "Parts", google.Part, requests.gemini_part, True),
    Table("gemini", "Tools", google.Tool, requests.gemini_tool, True),
    Table("gemini", "Members of a declaration", google.FunctionDeclaration, None, True),
    Table("gemini", "Members of toolConfig", google.ToolConfig, None, True),
    Table("gemini", "Members of generationConfig", google.GenerationConfig, None, True),
    Table("gemini", "Members of an answer", google.GenerateContentResponse, None, True),
    Table("gemini", "Members of a candidate", google.Candidate, None, True),
    Table("gemini", "Usage", google.GenerateContentResponseUsageMetadata, None, True),
]
# Types that have tables of their own: their members are not repeated where they are used.
_LISTED = frozenset(
    kind
    for union in (
        ResponseInputItemParam,
        ResponseInputContentParam,
        ResponseInputItem,
        ResponseInputParam,
        ResponseInputContent,
        ResponseOutputItem,
        Tool,
        ToolParam,
        Response,
        BetaContentBlockParam,
        BetaContentBlock,
        BetaMessageParam,
        BetaToolUnionParam,
        BetaMessage,
        BetaUsage,
        ChatCompletionMessageParam,
        ChatCompletionContentPartParam,
        ChatCompletionToolUnionParam,
        ChatCompletionMessage,
        google.Part,
        google.Content,
        google.Tool,
        google.Candidate,
        google.GenerateContentResponseUsageMetadata,
        google.FunctionDeclaration,
    )
    for kind in objects(union)
)


def sdk_rows(table: Table) -> dict[str, set[str]]:
    """Each variant or member that the SDK has, with all members inside of it."""
    if table.is_fields:
        return {
            name: set().union(*(_inside(kind) for kind in objects(member.hint)))
            for name, member in members(table.type).items()
        }
    found = {}
    for tag, kinds in variants(table.type).items():
        stop = _LISTED - frozenset(kinds)
        found[tag] = set().union(*(all_members(kind, stop) for kind in kinds)) - {"type"}
    return found


def _inside(kind: Any) -> set[str]:
    return set() if kind in _LISTED else all_members(kind, _LISTED) - {"type"}


@cache
def page_tables(dialect: str) -> dict[str, dict[str, Row]]:
    """By heading, and by each name in the first cell."""
    text = (PAGES / f"{dialect}.md").read_text()
    text = text[text.index("## Every type of the official SDK") :]
    found = {}
    for match in _TABLE.finditer(text):
        lines = [line.strip().strip("|").split("|") for line in match["text"].splitlines() if line.startswith("| `")]
        rows = {}
        for cells in lines:
            row = Row(frozenset(_NAMES.findall(cells[1])), tuple(cell.strip() for cell in cells[2:]))
            rows |= dict.fromkeys(_NAMES.findall(cells[0]), row)
        found[match["heading"]] = rows
    return found


def lacking(known: dict[str, Row], found: dict[str, set[str]]) -> list[str]:
    """What the SDK has and the table does not name."""
    missing = [name for name in found if name not in known]
    for name, inside in found.items():
        if name in known:
            missing += [f"{name}.{member}" for member in sorted(inside - known[name].members)]
    return missing
