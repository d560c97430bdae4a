"""Answers made by hypothesis, in the form each dialect can hold, and what must be left of one after a way over the wire."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from toolwire.events import Finished, FoldedAnswer, PartEnded, Started
from toolwire.types import Choice, Citation, Part, Reason, Reasoning, Refusal, Text, ToolCall, Usage

Strategy = st.SearchStrategy

# Every character that JSON can spell, lone surrogates among them.
CHARACTERS = st.characters() | st.sampled_from(list('\\"/\n\r\t\0\x1f\x7f\x85\u2028\u2029\ufeff\ud800\udfff😀é'))
WORDS = st.text(CHARACTERS, min_size=1, max_size=12)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**25), 10**25),
        st.floats(allow_nan=False, allow_infinity=False),
        WORDS,
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(WORDS, JSON, max_size=3)
USAGES = st.builds(
    Usage,
    input=st.integers(50, 90),
    output=st.integers(50, 90),
    cached=st.integers(0, 20),
    cache_written=st.integers(0, 20),
    reasoning=st.integers(0, 20),
)
LOGPROBS = st.lists(
    st.builds(
        lambda token, log: {"token": token, "logprob": log, "bytes": None, "top_logprobs": []},
        WORDS,
        st.integers(-99, 0).map(lambda number: number / 4),
    ),
    min_size=1,
    max_size=2,
).map(tuple)


@st.composite
def calls(draw: st.DrawFn, number: int, *, has_item: bool = False, kinds: tuple[str, ...] = ("function",)) -> ToolCall:
    kind: Any = draw(st.sampled_from(kinds))
    args = draw(ARGUMENTS) if kind == "function" else None
    raw = (
        json.dumps(args, separators=(",", ":"), ensure_ascii=draw(st.booleans())) if kind == "function" else draw(WORDS)
    )
    return ToolCall(
        id=f"call_{number}",
        name=draw(st.sampled_from(["weather", "look_up", "x"])),
        raw=raw,
        args=args,
        kind=kind,
        item_id=f"fc_{number}" if has_item else "",
        namespace=draw(st.sampled_from(["", "mcp"])) if has_item else "",
    )


@st.composite
def chat_answers(draw: st.DrawFn) -> FoldedAnswer:
    """Each choice has at most one thought, text and refusal, in this order, then calls."""
    ended: list[PartEnded] = []
    choices: list[Choice] = []
    for index in range(draw(st.sampled_from([1, 1, 1, 2]))):
        parts: list[Part] = []
        if draw(st.booleans()):
            parts.append(Reasoning(text=draw(WORDS)))
        if draw(st.booleans()):
            cited = st.builds(Citation, url=WORDS, title=WORDS, start=st.integers(0, 9), end=st.integers(0, 9))
            citations = tuple(draw(st.lists(cited, max_size=2)))
            parts.append(Text(text=draw(WORDS), citations=citations, logprobs=draw(st.none() | LOGPROBS)))
        if draw(st.integers(0, 3)) == 0:
            parts.append(Refusal(text=draw(WORDS)))
        count = draw(st.integers(0, 3))
        kinds = ("function", "function", "custom")
        parts += [draw(calls(10 * index + number, kinds=kinds)) for number in range(count)]
        ended += [PartEnded(index=0, part=part, choice=index) for part in parts]
        ends: list[Reason] = ["length", "refused", "tool_calls" if count else "stop"]
        choices.append(Choice(index=index, reason=draw(st.sampled_from(ends))))
    return _answer("chat", ended, choices, draw(USAGES))


@st.composite
def messages_answers(draw: st.DrawFn) -> FoldedAnswer:
    """Blocks in any order."""
    parts: list[Part] = []
    for number in range(draw(st.integers(0, 5))):
        match draw(st.sampled_from(["text", "thought", "redacted", "call", "call"])):
            case "text":
                cited = st.builds(Citation, url=WORDS, title=WORDS, quote=WORDS)
                parts.append(Text(text=draw(WORDS), citations=tuple(draw(st.lists(cited, max_size=2)))))
            case "thought":
                signature = draw(st.none() | st.text("abc=+/", min_size=1, max_size=8))
                text = draw(WORDS) if signature is None else draw(WORDS | st.just(""))
                parts.append(Reasoning(text=text, signature=signature))
            case "redacted":
                parts.append(Reasoning(text="", redacted="b3BhcXVl"))
            case _:
                parts.append(draw(calls(number)))
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    ends: list[Reason] = ["length", "refused", "paused", "tool_calls" if has_calls else "stop"]
    reason = draw(st.sampled_from(ends))
    sequence = draw(st.none() | WORDS) if reason == "stop" else None
    ended = [PartEnded(index=0, part=part) for part in parts]
    return _answer("messages", ended, [Choice(reason=reason, stop_sequence=sequence)], draw(USAGES))


@st.composite
def responses_answers(draw: st.DrawFn) -> FoldedAnswer:
    """Items in any order: messages and reasoning items of one part or two, calls of both kinds."""
    parts: list[Part] = []
    for number in range(draw(st.integers(0, 4))):
        match draw(st.sampled_from(["message", "thought", "summary", "call", "call"])):
            case "message":
                for _ in range(draw(st.integers(1, 2))):
                    cited = st.builds(Citation, url=WORDS, title=WORDS, start=st.integers(0, 9), end=st.integers(0, 9))
                    citations = tuple(draw(st.lists(cited, max_size=2)))
                    text = Text(text=draw(WORDS), citations=citations, logprobs=draw(st.none() | LOGPROBS))
                    refusal = Refusal(text=draw(WORDS), item_id=f"msg_{number}")
                    parts.append(_placed(text, f"msg_{number}") if draw(st.booleans()) else refusal)
            case "thought" | "summary" as kind:
                count = draw(st.integers(1, 2))
                encrypted = draw(st.none() | st.just("ZW5j"))
                parts += [
                    Reasoning(
                        text=draw(WORDS),
                        item_id=f"rs_{number}",
                        is_summary=kind == "summary",
                        encrypted=encrypted if place == count - 1 else None,
                        extra={"responses": {}},
                    )
                    for place in range(count)
                ]
            case _:
                parts.append(draw(calls(number, has_item=True, kinds=("function", "custom"))))
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    ends: list[Reason] = ["length", "refused", "tool_calls" if has_calls else "stop"]
    ended = [PartEnded(index=0, part=part) for part in parts]
    return _answer("responses", ended, [Choice(reason=draw(st.sampled_from(ends)))], draw(USAGES))


@st.composite
def gemini_answers(draw: st.DrawFn) -> FoldedAnswer:
    """Parts in any order, but no two texts or unsigned thoughts beside each other: in a stream these are one."""
    ended: list[PartEnded] = []
    choices: list[Choice] = []
    for index in range(draw(st.sampled_from([1, 1, 1, 2]))):
        parts: list[Part] = []
        for number in range(draw(st.integers(1, 5))):
            kinds = ["text", "thought", "call", "call"]
            before = type(parts[-1]).__name__ if parts else ""
            kind = draw(st.sampled_from([one for one in kinds if (one, before) not in _MERGED]))
            if kind == "text":
                parts.append(Text(text=draw(WORDS)))
            elif kind == "thought":
                signature = draw(st.none() | st.text("abc=+/", min_size=1, max_size=8))
                parts.append(Reasoning(text=draw(WORDS), encrypted=signature, extra={"gemini": {}}))
            else:
                extra = draw(st.sampled_from([{}, {"gemini": {"thoughtSignature": "c2ln"}}]))
                parts.append(msgspec.structs.replace(draw(calls(10 * index + number)), extra=extra))
        ended += [PartEnded(index=0, part=part, choice=index) for part in parts]
        has_calls = any(isinstance(part, ToolCall) for part in parts)
        ends: list[Reason] = ["length", "refused", "tool_calls" if has_calls else "stop"]
        reason = (
            "length" if not any(isinstance(part, Text | ToolCall) for part in parts) else draw(st.sampled_from(ends))
        )
        choices.append(Choice(index=index, reason=reason))
    usage = draw(USAGES)
    return _answer("gemini", ended, choices, msgspec.structs.replace(usage, cache_written=0))


_MERGED = {("text", "Text"), ("thought", "Reasoning")}


FAMILIES: dict[str, Strategy[FoldedAnswer]] = {
    "chat": chat_answers(),
    "messages": messages_answers(),
    "responses": responses_answers(),
    "gemini": gemini_answers(),
}


def essence(answer: FoldedAnswer) -> Any:
    """Everything that means something; what only one wire spells (echoes in extra) left out."""
    parts = [(ended.choice, _essence_of(ended.part)) for ended in answer.parts]
    choices = [(choice.index, choice.reason, choice.stop_sequence) for choice in answer.finished.choices]
    usage = answer.finished.usage
    counters = usage and (usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning)
    return (answer.started.id, answer.started.model), parts, choices, counters


def _essence_of(part: Part) -> Any:
    match part:
        case Text():
            cited = [(one.url, one.title, one.quote, one.start, one.end) for one in part.citations]
            logprobs = [{**entry, "bytes": entry["bytes"] or None} for entry in part.logprobs or ()]
            return "text", part.text, part.item_id, cited, logprobs
        case Refusal():
            return "refusal", part.text, part.item_id
        case Reasoning():
            rest = (part.signature, part.redacted, part.encrypted, part.item_id, part.is_summary)
            return "reasoning", part.text, *rest
        case ToolCall():
            return "call", part.id, part.name, part.raw, part.kind, part.item_id, part.namespace
    raise AssertionError(part)


def _placed(text: Text, item_id: str) -> Text:
    return Text(text=text.text, citations=text.citations, logprobs=text.logprobs, item_id=item_id)


def _answer(dialect: str, parts: list[PartEnded], choices: list[Choice], usage: Usage) -> FoldedAnswer:
    numbered = tuple(PartEnded(index=index, part=one.part, choice=one.choice) for index, one in enumerate(parts))
    started = Started(id="answer_1", model="m", created=1700000000, extra={dialect: {}})
    return FoldedAnswer(started=started, parts=numbered, finished=Finished(choices=tuple(choices), usage=usage))
