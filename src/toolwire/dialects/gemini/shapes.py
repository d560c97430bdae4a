"""Gemini: what both directions share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from ...types import Citation, Json, JsonObject, Reason, Usage
from ...wire.fields import count_of, text_in

NAME = "gemini"
GENERATE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
SIGNATURE = "thoughtSignature"
# The provider's constant for a call of another model, which has no signature. It is not a signature itself.
UNSIGNED = "skip_thought_signature_validator"

# What a finish reason means; None is an answer that failed.
REASONS: dict[str, Reason | None] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "LANGUAGE": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
    "IMAGE_SAFETY": "refused",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
    "MODEL_ARMOR": "refused",
    "CONTINUATION": "paused",
    "MALFORMED_FUNCTION_CALL": None,
    "UNEXPECTED_TOOL_CALL": None,
    "TOO_MANY_TOOL_CALLS": None,
    "MALFORMED_RESPONSE": None,
    "MISSING_THOUGHT_SIGNATURE": None,
}
FINISH: dict[Reason, str] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "refused": "SAFETY",
    "paused": "OTHER",
    "other": "OTHER",
}
# Members with names of several words that we read.
_READ = (
    "systemInstruction toolConfig generationConfig safetySettings cachedContent generateContentRequest "
    "functionCall functionResponse inlineData fileData thoughtSignature mimeType fileUri displayName "
    "functionDeclarations parametersJsonSchema functionCallingConfig allowedFunctionNames googleSearch codeExecution "
    "urlContext googleSearchRetrieval googleMaps fileSearch computerUse "
    "topP topK candidateCount maxOutputTokens stopSequences responseMimeType responseSchema responseJsonSchema "
    "presencePenalty frequencyPenalty responseLogprobs thinkingConfig thinkingBudget thinkingLevel includeThoughts "
    "anyOf minItems maxItems minLength maxLength minProperties maxProperties prefixItems propertyOrdering "
    "additionalProperties"
)
_SPELLED = {re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name): name for name in _READ.split()}
_ADDED = re.compile(r"_[0-9-]")
_STARTS = re.compile(r"[A-Za-z_]")


def camel(value: JsonObject) -> JsonObject:
    """The same object with the members that we read in camel case; requests may use snake case."""
    if not any("_" in key for key in value):
        return value
    return {_SPELLED.get(key, key): item for key, item in value.items()}


def plain_name(name: str) -> str:
    """A model's name without the folder that most models are in."""
    return unquote(name).removeprefix("models/")


def name_out(name: str) -> str:
    """Names begin with a letter or an underscore (H054)."""
    return name if _STARTS.match(name) else f"_{name}"


def name_in(name: str, offered: frozenset[str]) -> str:
    return name[1:] if _ADDED.match(name) and name not in offered else name


def usage_in(value: JsonObject) -> Usage:
    thoughts = count_of(value.get("thoughtsTokenCount"))
    return Usage(
        input=count_of(value.get("promptTokenCount")) + count_of(value.get("toolUsePromptTokenCount")),
        output=count_of(value.get("candidatesTokenCount")) + thoughts,
        cached=count_of(value.get("cachedContentTokenCount")),
        reasoning=thoughts,
        extra={NAME: value},
    )


def usage_out(usage: Usage) -> JsonObject:
    """Reasoning is counted separately from the text; counters of its own stay as they came."""
    own = usage.extra.get(NAME, {})
    thoughts = min(usage.reasoning, usage.output)
    counted: JsonObject = {
        "promptTokenCount": max(0, usage.input - count_of(own.get("toolUsePromptTokenCount"))),
        "candidatesTokenCount": usage.output - thoughts,
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cached:
        counted["cachedContentTokenCount"] = usage.cached
    if thoughts:
        counted["thoughtsTokenCount"] = thoughts
    return {**own, **counted}


def citations_in(candidate: JsonObject, text: str) -> list[Citation]:
    """Sources of the text: what it quotes, and what a search found for it. Offsets count bytes here."""
    data = text.encode("utf-8", "replace")
    found: list[Citation] = []
    for item in _objects(candidate.get("citationMetadata"), "citations", "citationSources"):
        found.append(
            Citation(
                url=text_in(item, "uri"),
                title=text_in(item, "title"),
                start=_letters(data, item.get("startIndex", 0)),
                end=_letters(data, item.get("endIndex")),
            )
        )
    chunks = _objects(candidate.get("groundingMetadata"), "groundingChunks")
    for support in _objects(candidate.get("groundingMetadata"), "groundingSupports"):
        found += _supported(support, chunks, data)
    return found


def citation_out(citation: Citation, text: str) -> JsonObject | None:
    if not citation.url:
        return None
    value: JsonObject = {"uri": citation.url}
    if citation.title:
        value["title"] = citation.title
    for key, place in (("startIndex", citation.start), ("endIndex", citation.end)):
        if place is not None:
            value[key] = len(text[:place].encode("utf-8", "replace"))
    return value


def _supported(support: JsonObject, chunks: list[JsonObject], data: bytes) -> list[Citation]:
    segment, numbers = support.get("segment"), support.get("groundingChunkIndices")
    segment = segment if isinstance(segment, dict) else {}
    found: list[Citation] = []
    for number in numbers if isinstance(numbers, list) else ():
        source = chunks[number].get("web") if type(number) is int and 0 <= number < len(chunks) else None
        if isinstance(source, dict):
            found.append(
                Citation(
                    url=text_in(source, "uri"),
                    title=text_in(source, "title"),
                    quote=text_in(segment, "text"),
                    start=_letters(data, segment.get("startIndex", 0)),
                    end=_letters(data, segment.get("endIndex")),
                )
            )
    return found


def _objects(owner: Any, *keys: str) -> list[JsonObject]:
    for key in keys:
        items = owner.get(key) if isinstance(owner, dict) else None
        if isinstance(items, list):
            return [item if isinstance(item, dict) else {} for item in items]
    return []


def _letters(data: bytes, place: Any) -> int | None:
    """The number of characters before a byte."""
    if type(place) is not int or not 0 <= place <= len(data):
        return None
    return len(data[:place].decode("utf-8", "ignore"))


def logprobs_in(result: Any) -> tuple[Json, ...]:
    """One entry a token, with its alternatives in it, as the other dialects have them; without what is no entry."""
    if not isinstance(result, dict):
        return ()
    others = _list(result.get("topCandidates"))
    entries: list[Json] = []
    for place, chosen in enumerate(_list(result.get("chosenCandidates"))):
        if (entry := _entry(chosen)) is not None:
            owner = others[place] if place < len(others) else None
            listed = _list(owner.get("candidates")) if isinstance(owner, dict) else []
            top = [found for one in listed if (found := _entry(one)) is not None]
            entries.append({**entry, "top_logprobs": top})
    return tuple(entries)


def logprobs_out(entries: Sequence[Json]) -> JsonObject:
    """The member of a candidate, {} if there are none. Chosen tokens and alternatives are two parallel lists here."""
    known = [entry for entry in entries if isinstance(entry, dict)]
    if not known:
        return {}
    tops = [{"candidates": [_logprob_entry(one) for one in _list(entry.get("top_logprobs"))]} for entry in known]
    return {"logprobsResult": {"chosenCandidates": [_logprob_entry(entry) for entry in known], "topCandidates": tops}}


def _entry(value: Any) -> JsonObject | None:
    if not isinstance(value, dict) or not isinstance(token := value.get("token"), str):
        return None
    return {"token": token, "logprob": value.get("logProbability", 0), "bytes": None}


def _logprob_entry(entry: Any) -> JsonObject:
    found = entry if isinstance(entry, dict) else {}
    return {"token": found.get("token", ""), "logProbability": found.get("logprob", 0)}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
