"""Right arguments with something around them, or without the brackets at their ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from .damage import Case, Hope, register

Wrap = Callable[[str, Case], str | None]
WRAPS: dict[str, Wrap] = {}


def wrapping(hope: Hope = "repairable") -> Callable[[Wrap], Wrap]:
    def add(wrap: Wrap) -> Wrap:
        register("wrapping", hope, wrap.__name__, lambda case: wrap(text_of(case), case))
        if hope == "repairable":
            WRAPS[wrap.__name__] = wrap
        return wrap

    return add


def text_of(case: Case) -> str:
    return json.dumps(case.sample.arguments, ensure_ascii=False)


def _framed(name: str, before: str, after: str, why: str) -> None:
    def wrap(text: str, case: Case) -> str:
        return before.replace("$", case.sample.tool) + text + after.replace("$", case.sample.tool)

    wrap.__name__, wrap.__doc__ = name, why
    wrapping()(wrap)


_FENCE = "A fence marks where the object begins and ends."
_framed("fence_json", "```json\n", "\n```", _FENCE)
_framed("fence_bare", "```\n", "\n```\n", _FENCE)
_framed("fence_left_open", "```json\n", "", _FENCE)
_framed("fence_in_prose", "Here are the arguments:\n\n```json\n", "\n```\n\nLet me know if that's fine.", _FENCE)
_framed("fence_inline", "```json", "```", _FENCE)
_framed("fence_tildes", "~~~json\n", "\n~~~", _FENCE)
_PROSE = "There is one object in the text, and words around it are not arguments."
_framed("prose_before", "Sure! I'll call the tool now: ", "", _PROSE)
_framed("prose_after", "", "\n\nThis call will get what you asked for.", _PROSE)
_framed("prose_around", "I think this is right.\n", "\nDon't you?", _PROSE)
_framed("label_before", "Arguments: ", "", _PROSE)
_framed("json_word_before", "json\n", "", _PROSE)
_framed("assignment", "arguments = ", ";", _PROSE)
_framed("serialised", "json.dumps(", ")", _PROSE)
_framed(
    "chatty",
    'To answer "it", I need: 1) data, 2) care. So here goes:\n',
    '\n\nNote: "it" may change; that is fine, I think.',
    _PROSE,
)
_framed("called_as_function", "$(", ")", _PROSE)
_framed("after_name", "$ ", "", _PROSE)
_JUNK = "What follows the closing bracket is no part of the object."
_framed("trailing_fence", "", "\n```", _JUNK)
_framed("trailing_tag", "", "\n</tool_call>", _JUNK)
_framed("trailing_semicolon", "", ";", _JUNK)
_framed("trailing_quote", "", '"', _JUNK)
_framed("trailing_comma_outside", "", ",", _JUNK)
_framed("trailing_brace", "", "}", _JUNK)
_framed("trailing_braces", "", "}]}", _JUNK)
_framed("trailing_bracket", "", "]", _JUNK)
_framed("trailing_end_token", "", "<|im_end|>", _JUNK)
_framed("trailing_deepseek_token", "", "<｜tool▁call▁end｜>", _JUNK)
_framed("trailing_nul", "", "\0\0", _JUNK)
_framed("trailing_ellipsis", "", " ...", _JUNK)
_TAGS = "Tags that local models write around calls."
_framed("tags_tool_call", "<tool_call>\n", "\n</tool_call>", _TAGS)
_framed("tags_function", "<function=$>", "</function>", _TAGS)
_framed("tags_arguments", "<arguments>", "</arguments>", _TAGS)
_framed("mistral_mark", "[TOOL_CALLS]", "", _TAGS)
_framed("parentheses", "(", ")", "Brackets that hold one thing.")
_framed("backticks", "`", "`", "Quotes around the whole that JSON does not have.")
_framed("apostrophes_around", "'", "'", "Quotes around the whole that JSON does not have.")
_framed("byte_order_mark", "\ufeff", "", "A mark that says nothing here.")
_framed("doubled_braces", "{", "}", "Braces doubled as in a template: the inner object is the one with members.")
_framed("brace_before", "{", "", "An opening brace that opens nothing of its own.")


@wrapping()
def second_copy(text: str, case: Case) -> str | None:
    """The same object again: it is the same call."""
    return text + case.random.choice(["", "\n", " "]) + text


@wrapping("doubtful")
def two_objects(text: str, case: Case) -> str | None:
    """Two calls in one: neither may be chosen, nor may they be united."""
    other = dict(reversed(list(case.sample.arguments.items())))
    for name, value in other.items():
        other[name] = f"{value} too" if isinstance(value, str) else value
    return None if other == case.sample.arguments else text + json.dumps(other, ensure_ascii=False)


@wrapping()
def empty_object_before(text: str, case: Case) -> str | None:
    """Some upstreams send the empty start, and then the arguments; where {} is a call of its own, there would be two."""
    return None if case.is_legal({}) else "{}" + text


@wrapping()
def keyword_call(text: str, case: Case) -> str | None:
    """As Python calls a function."""
    if not all(name.isidentifier() for name in case.sample.arguments):
        return None
    return f"{case.sample.tool}({', '.join(f'{name}={value!r}' for name, value in case.sample.arguments.items())})"


def _is_object(text: str) -> bool:
    return text.startswith("{") and text.endswith("}")


def _is_full(case: Case) -> bool:
    """Whether the call has all that its tool knows, so that nothing can have followed."""
    schema = case.sample.schema
    known = schema.get("properties", {}).keys()
    return bool(known) and known == case.sample.arguments.keys() and not schema.get("additionalProperties")


@wrapping()
def last_brace_dropped(text: str, case: Case) -> str | None:
    """All that the tool knows is there and ended: nothing but the brace can be missing."""
    return text[:-1] if re.search(r'["\]}el]}$', text) and _is_object(text) and _is_full(case) else None


@wrapping("doubtful")
def last_brace_dropped_before_more(text: str, case: Case) -> str | None:
    """Members that are not required may have followed: it looks the same as a call that was cut."""
    return text[:-1] if re.search(r'["\]}el]}$', text) and not _is_full(case) else None


@wrapping("doubtful")
def last_brace_dropped_after_number(text: str, case: Case) -> str | None:
    """1 may be the beginning of 100."""
    return text[:-1] if re.search(r"\d}$", text) else None


@wrapping("doubtful")
def all_last_brackets_dropped(text: str, case: Case) -> str | None:
    """An array that is not closed may have had more items."""
    return re.sub(r"[}\]]{2,}$", "", text) if re.search(r"[}\]]{2,}$", text) else None


@wrapping()
def last_brace_dropped_in_fence(text: str, case: Case) -> str | None:
    """The fence was closed, so the model thought that all was there."""
    return f"```json\n{text[:-1]}\n```" if _is_object(text) and case.sample.arguments else None


@wrapping()
def last_brace_dropped_in_tag(text: str, case: Case) -> str | None:
    """The same with a closing tag."""
    return f"{text[:-1]}</tool_call>" if _is_object(text) and case.sample.arguments else None


@wrapping()
def inner_bracket_dropped(text: str, case: Case) -> str | None:
    """The outer bracket closes what the inner one opened."""
    return re.sub(r"\]}$", "}", text) if re.search(r"(?<!\[)\]}$", text) else None


@wrapping()
def middle_bracket_dropped(text: str, case: Case) -> str | None:
    """An array without its end, before the next key: an array has no keys."""
    found = list(re.finditer(r'(?<=["\d])\](?=, "[^"\\]+": )', text))
    if not found:
        return None
    where = case.random.choice(found).start()
    return text[:where] + text[where + 1 :]


@wrapping()
def first_brace_dropped(text: str, case: Case) -> str | None:
    """Members without the brace before them."""
    return text[1:] if case.sample.arguments and _is_object(text) else None


@wrapping()
def both_braces_dropped(text: str, case: Case) -> str | None:
    """Members, and nothing around, where nothing can have followed."""
    return text[1:-1] if case.sample.arguments and last_brace_dropped(text, case) else None


@wrapping()
def closed_by_the_wrong_bracket(text: str, case: Case) -> str | None:
    """There is an end, though the sign is wrong."""
    return text[:-1] + "]" if _is_object(text) and case.sample.arguments else None


@wrapping("doubtful")
def last_quote_dropped(text: str, case: Case) -> str | None:
    """A string that never ends: the brace may belong to it, and so may what did not arrive."""
    return text[:-2] + "}" if text.endswith('"}') else None
