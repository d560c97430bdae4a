"""Canonical values: what a conversation with tools means, free of any wire format.

The central type is ToolCall: raw is what the model wrote, to the byte; args is set only when raw parsed as an object.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
Extra: TypeAlias = dict[str, JsonObject]  # dialect -> members only that dialect understands

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Reason: TypeAlias = Literal["stop", "length", "tool_calls", "refused", "paused", "other"]
CallKind: TypeAlias = Literal["function", "custom", "typed"]
MediaKind: TypeAlias = Literal["image", "file", "audio"]


class Citation(Struct, frozen=True, kw_only=True):
    """Where a piece of text comes from; start and end are offsets into that text."""

    url: str = ""
    title: str = ""
    quote: str = ""
    start: int | None = None
    end: int | None = None
    extra: Extra = {}


class Text(Struct, frozen=True, kw_only=True, tag="text"):
    """is_continuation (also in Refusal and Reasoning): the back end sent it and the previous part of its kind as one string."""

    text: str
    citations: tuple[Citation, ...] = ()
    logprobs: tuple[Json, ...] | None = None
    item_id: str = ""
    is_continuation: bool = False
    extra: Extra = {}


class Refusal(Struct, frozen=True, kw_only=True, tag="refusal"):
    text: str
    item_id: str = ""
    is_continuation: bool = False
    extra: Extra = {}


class Reasoning(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """signature, redacted and encrypted belong to the back end that made them; they are never invented or edited."""

    text: str
    signature: str | None = None
    redacted: str | None = None
    encrypted: str | None = None
    item_id: str = ""
    is_summary: bool = False
    is_continuation: bool = False
    extra: Extra = {}


class Media(Struct, frozen=True, kw_only=True, tag="media"):
    """Exactly one of data (base64), url and file_id is set."""

    kind: MediaKind
    mime: str = ""
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str = ""
    detail: str | None = None
    extra: Extra = {}


class ToolCall(Struct, frozen=True, kw_only=True, tag="tool_call"):
    id: str
    name: str
    raw: str
    args: JsonObject | None = None
    item_id: str = ""
    kind: CallKind = "function"
    namespace: str = ""
    extra: Extra = {}


def numbered_id(number: int) -> str:
    """The id of a call that is known by its position alone, counted from 1 over the whole conversation."""
    return f"call_{number}"


class Opaque(Struct, frozen=True, kw_only=True, tag="opaque"):
    """A part we carry and do not interpret; it goes back only to the dialect it came from."""

    dialect: str
    value: JsonObject
    extra: Extra = {}


class ToolResult(Struct, frozen=True, kw_only=True, tag="tool_result"):
    call_id: str
    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    name: str = ""
    kind: CallKind = "function"
    item_id: str = ""
    extra: Extra = {}


Part: TypeAlias = Text | Refusal | Reasoning | Media | ToolCall | ToolResult | Opaque


class Source(Struct, frozen=True):
    """The wire object something was decoded from; the same dialect writes it back untouched."""

    dialect: str
    value: Json


class Message(Struct, frozen=True, kw_only=True):
    """is_head: it came from (and belongs in) the request's own field for instructions. declares_tools: its source brings tools
    or settings, which are among those of the request; the message itself may say nothing.

    Code that changes parts must drop source: use with_parts.
    """

    role: Role
    parts: tuple[Part, ...]
    is_head: bool = False
    declares_tools: bool = False
    extra: Extra = {}
    source: Source | None = None

    def with_parts(self, parts: tuple[Part, ...]) -> Message:
        return Message(role=self.role, parts=parts, is_head=self.is_head, extra=self.extra)


class Tool(Struct, frozen=True, kw_only=True):
    """function: has a schema. custom: takes free text, described by a grammar if it has one. typed: its dialect knows what it
    takes, and schema says the same for others. hosted: run by the back end, known by its source alone.

    label is the name for back ends that have no namespaces, "" where the name itself will do; namespace_description is what the
    client says of the namespace as a whole. A deferred tool is not shown until the client finds it. is_direct: the model may call it
    itself; otherwise only programs may, which the model writes and its provider runs.
    """

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    kind: Literal["function", "custom", "typed", "hosted"] = "function"
    namespace: str = ""
    namespace_description: str = ""
    label: str = ""
    grammar: str = ""
    is_deferred: bool = False
    is_direct: bool = True
    extra: Extra = {}
    source: Source | None = None


class ToolChoice(Struct, frozen=True, kw_only=True):
    """allowed: only names may be called, and one of them must be if is_required; hosted: see source."""

    mode: Literal["auto", "none", "required", "named", "allowed", "hosted"]
    names: tuple[str, ...] = ()
    is_required: bool = False
    source: Source | None = None


class Sampling(Struct, frozen=True, kw_only=True):
    """None: not asked for. Numbers are int or Decimal, as the client wrote them."""

    temperature: Json = None
    top_p: Json = None
    top_k: Json = None
    seed: Json = None
    frequency_penalty: Json = None
    presence_penalty: Json = None
    stop: tuple[str, ...] = ()
    choices: int = 1
    logprobs: bool = False
    top_logprobs: int | None = None


class Thinking(Struct, frozen=True, kw_only=True):
    """How much the model should reason: an effort, or a budget in tokens, or explicitly not at all."""

    mode: Literal["", "off", "on", "adaptive"] = ""
    effort: str | None = None
    budget: int | None = None
    summary: str | None = None


class OutputFormat(Struct, frozen=True, kw_only=True):
    """The form of the text: free, any JSON, or JSON by a schema."""

    format: Literal["text", "json", "schema"] = "text"
    name: str = ""
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None
    verbosity: str | None = None


class State(Struct, frozen=True, kw_only=True):
    """The stored state that a request needs: an earlier answer, storage of its own answer, or both.

    field: the member that refers to earlier state, "" without one. why and refusal: for the error if that state cannot be had.
    answer_id: the id that the answer must have, because a client already knows it.
    """

    field: str = ""
    why: str = ""
    refusal: JsonObject = {}
    previous: str = ""
    conversation: str = ""
    references: tuple[str, ...] = ()
    is_leaning: bool = False  # it is not complete in itself
    is_kept: bool = False
    is_background: bool = False
    is_upstreams: bool = False  # only the provider itself can have it
    answer_id: str = ""


class Compaction(Struct, frozen=True, kw_only=True):
    """What a request wants done about the length of its own conversation. has_items: its messages contain summaries of earlier
    compactions.

    is_now: the answer is a summary of the conversation, alone. is_endpoint: it is the object that only the endpoint for this has.
    threshold: the number of input tokens above which the conversation is summarized before it is answered, None without one; pauses: the
    answer then ends after the summary. instructions replace ours for the summary. edits: what to clear, in the form of the dialect.
    """

    has_items: bool = False
    is_now: bool = False
    is_endpoint: bool = False
    threshold: int | None = None
    pauses: bool = False
    instructions: str = ""
    edits: tuple[JsonObject, ...] = ()


class RecurringTools(tuple[Tool, ...]):
    """Tools that recur: every request of a conversation has the same object. facts: what stages have found out about them.
    is_valid: their schemas were checked."""

    _MOST_FACTS: Final = 8

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self.is_valid = False
        self.facts: dict[Hashable, Any] = {}

    def remember(self, key: Hashable, value: Any) -> None:
        if len(self.facts) >= self._MOST_FACTS:
            self.facts.clear()
        self.facts[key] = value


class Request(Struct, frozen=True, kw_only=True):
    """source is the decoded body, wire its bytes: the verbatim path and echoes need them as they came. has_new_tools: the
    tools, and the choice among them, are no longer those of the source. owner: whose it is, where several share the gateway.
    unseen: how many of the last messages the gateway itself has added; its client does not know them, and will not send them.
    size: bytes of the body that it was read from, with those of the history that it refers to. repaired: what was not in the
    form of its dialect when it was read; wire and source still have it as it came, messages do not. next_call: its client may drop the
    ids of calls, which are then numbered by position; the first call of the answer has this number. 0: ids stay as they are."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_calls: bool | None = None
    max_tokens: int | None = None
    sampling: Sampling = Sampling()
    thinking: Thinking | None = None
    output: OutputFormat = OutputFormat()
    stream: bool = False
    stream_usage: bool = False
    user: str | None = None
    owner: str = ""
    unseen: int = 0
    size: int = 0
    metadata: JsonObject | None = None
    state: State | None = None
    compaction: Compaction | None = None
    has_new_tools: bool = False
    repaired: tuple[Loss, ...] = ()
    next_call: int = 0
    extra: Extra = {}
    origin: str = ""
    source: JsonObject = {}
    wire: bytes = b""
    headers: dict[str, str] = {}


# A header in which an agent states why it makes the last request of a task.
LOOP_HEADER: Final = "x-toolwire-loop"
REACHED_BOUND: Final = "max_iterations"


class Loss(Struct, frozen=True):
    """Something the other side cannot express: dropped or reworded, and always reported."""

    feature: str
    where: str
    why: str


class Usage(Struct, frozen=True, kw_only=True):
    """input counts every input token, also those read from or written to a cache."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    extra: Extra = {}

    def plus(self, more: Usage) -> Usage:
        """Of two answers together; what a dialect counts besides is the last one's."""
        return Usage(
            input=self.input + more.input,
            output=self.output + more.output,
            cached=self.cached + more.cached,
            cache_written=self.cache_written + more.cache_written,
            reasoning=self.reasoning + more.reasoning,
            extra=more.extra,
        )


class Choice(Struct, frozen=True, kw_only=True):
    """How one choice ended: reason is ours, raw_reason the back end's own word."""

    reason: Reason
    raw_reason: str = ""
    index: int = 0
    stop_sequence: str | None = None
    extra: Extra = {}
