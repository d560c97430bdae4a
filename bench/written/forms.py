"""The forms in which models write calls, rendered from what the models' own templates and cards say, not from what the reader takes.

A form is asked for the calls alone; `said` puts the words around them that are usual for it.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from .cases import Call

Json = Any
Write = Callable[[Sequence[Call], Random], str | None]

BEFORE = (
    "I'll look that up for you.",
    "Sure! Let me check.",
    "To answer this I need the tool, so I will call it now:",
    "First, let me get the data (this may take a moment)...\n\n- step 1: call the tool\n- step 2: read the result",
    "Ich sehe kurz nach – einen Moment. 🔎",
    "The value of `x` is 1 < 2, so:",
)
AFTER = ("I will tell you as soon as I have the result.", "Waiting for the result.", "That should do it!")
THOUGHT = "The user wants this done. I should call {name} with the right arguments, e.g. {arguments}, and then answer."


@dataclass(frozen=True)
class Form:
    """is_listed: one that the reader says it knows. before, after, thinks: how often there are words around the calls."""

    name: str
    write: Write
    is_listed: bool = True
    is_instructed: bool = False  # the one form that a model is asked for
    before: float = 0.5
    after: float = 0.0
    thinks: float = 0.1


@dataclass(frozen=True)
class Said:
    """An answer: all of it, and the words in it that are for the reader."""

    text: str
    words: str


FORMS: dict[str, Form] = {}


def form(name: str, **options: Any) -> Callable[[Write], Write]:
    def note(write: Write) -> Write:
        assert name not in FORMS, name
        FORMS[name] = Form(name, write, **options)
        return write

    return note


def said(chosen: Form, calls: Sequence[Call], random: Random) -> Said | None:
    """The calls in this form with words around them, or None where the form cannot say them."""
    written = chosen.write(calls, random)
    if written is None:
        return None
    return surrounded(written, calls, random, chosen.before, chosen.after, chosen.thinks)


def surrounded(written: str, calls: Sequence[Call], random: Random, before: float, after: float, thinks: float) -> Said:
    thought = ""
    if random.random() < thinks:
        words = THOUGHT.format(name=calls[0].name, arguments=compact(calls[0].arguments))
        thought = f"<think>\n{words}\n</think>\n\n"
    first = random.choice(BEFORE) if random.random() < before else ""
    last = random.choice(AFTER) if random.random() < after else ""
    gap = random.choice(["\n", "\n\n"]) if first else ""
    return Said(f"{thought}{first}{gap}{written}" + (f"\n{last}" if last else ""), thought + first + last)


def compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def any_json(value: Json, random: Random) -> str:
    """JSON as one model or another lays it out."""
    layout: dict[str, Json] = random.choice([{}, {}, {"indent": 2}, {"separators": (",", ":")}])
    return json.dumps(value, ensure_ascii=random.random() < 0.3, **layout)


def _each(calls: Sequence[Call], gap: str, write: Callable[[int, Call], str]) -> str:
    return gap.join(write(index, call) for index, call in enumerate(calls))


@form("own block", is_instructed=True, after=0.1)
def own(calls: Sequence[Call], random: Random) -> str:
    def block(_: int, call: Call) -> str:
        inner = any_json({"name": call.name, "arguments": call.arguments}, random)
        gap = random.choice(["", "\n"])
        return f"<tool_call>{gap}{inner}{gap}</tool_call>"

    return _each(calls, random.choice(["\n", "", "\n\n"]), block)


@form("Hermes", after=0.1)
def hermes(calls: Sequence[Call], random: Random) -> str:
    """Hermes 2 wrote the arguments first, Hermes 3 and Qwen 2.5 the name."""
    is_name_first = random.random() < 0.5

    def block(_: int, call: Call) -> str:
        members = [("name", call.name), ("arguments", call.arguments)]
        return f"<tool_call>\n{compact(dict(members if is_name_first else members[::-1]))}\n</tool_call>"

    return _each(calls, "\n", block)


@form("Qwen XML")
def qwen(calls: Sequence[Call], random: Random) -> str:
    """Qwen3-Coder: the template writes True and None for what is neither text nor list, the model often true and null."""
    is_python = random.random() < 0.5

    def value(given: Json) -> str:
        if isinstance(given, str):
            return given
        return str(given) if is_python and not isinstance(given, dict | list) else compact(given)

    def block(_: int, call: Call) -> str:
        inner = "".join(f"<parameter={key}>\n{value(given)}\n</parameter>\n" for key, given in call.arguments.items())
        return f"<tool_call>\n<function={call.name}>\n{inner}</function>\n</tool_call>"

    return _each(calls, "\n", block)


@form("GLM 4.5")
def glm(calls: Sequence[Call], random: Random) -> str:
    return _glm(calls, "\n")


@form("GLM 4.7")
def newer_glm(calls: Sequence[Call], random: Random) -> str:
    return _glm(calls, "")


def _glm(calls: Sequence[Call], gap: str) -> str:
    def block(_: int, call: Call) -> str:
        pairs = [
            f"<arg_key>{key}</arg_key>{gap}<arg_value>{given if isinstance(given, str) else compact(given)}</arg_value>{gap}"
            for key, given in call.arguments.items()
        ]
        return f"<tool_call>{call.name}{gap}{''.join(pairs)}</tool_call>"

    return _each(calls, "\n", block)


@form("Mistral, array", before=0.2, thinks=0)
def mistral(calls: Sequence[Call], random: Random) -> str:
    more = [{"id": f"{random.randrange(10**9):09}"} if random.random() < 0.3 else {} for _ in calls]
    array = [{"name": call.name, "arguments": call.arguments, **extra} for call, extra in zip(calls, more, strict=True)]
    return f"[TOOL_CALLS]{random.choice(['', ' '])}{compact(array)}"


@form("Mistral, `[ARGS]`", before=0.2, thinks=0)
def newer_mistral(calls: Sequence[Call], random: Random) -> str:
    """Version 13 of the tokenizer, and version 11 with its ids."""
    mark = random.choice(["", "", "[CALL_ID]a1b2c3d4e"])
    return _each(calls, "", lambda _, call: f"[TOOL_CALLS]{call.name}{mark}[ARGS]{compact(call.arguments)}")


@form("Mistral, without `[ARGS]`", before=0.2, thinks=0)
def barer_mistral(calls: Sequence[Call], random: Random) -> str:
    """The same where the server leaves out the token between name and arguments."""
    return _each(calls, "", lambda _, call: f"[TOOL_CALLS]{call.name}{compact(call.arguments)}")


@form("Llama JSON", before=0, thinks=0)
def llama(calls: Sequence[Call], random: Random) -> str:
    return _each(calls, "; ", lambda _, call: compact({"name": call.name, "parameters": call.arguments}))


@form("Llama `<|python_tag|>`", before=0, thinks=0)
def llama_tagged(calls: Sequence[Call], random: Random) -> str:
    return f"<|python_tag|>{llama(calls, random)}"


@form("Llama `<function=>`", before=0.2, thinks=0)
def llama_function(calls: Sequence[Call], random: Random) -> str:
    return _each(calls, "\n", lambda _, call: f"<function={call.name}>{compact(call.arguments)}</function>")


@form("pythonic", before=0, thinks=0)
def pythonic(calls: Sequence[Call], random: Random) -> str | None:
    if not all(key.isidentifier() and not keyword.iskeyword(key) for call in calls for key in call.arguments):
        return None

    def one(_: int, call: Call) -> str:
        return f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})"

    return f"[{_each(calls, ', ', one)}]"


@form("DeepSeek DSML")
def dsml(calls: Sequence[Call], random: Random) -> str:
    def pair(key: str, value: Json) -> str:
        is_text = isinstance(value, str)
        inner = value if is_text else compact(value)
        return f'<｜DSML｜parameter name="{key}" string="{str(is_text).lower()}">{inner}</｜DSML｜parameter>\n'

    def block(_: int, call: Call) -> str:
        pairs = "".join(pair(key, value) for key, value in call.arguments.items())
        return f'<｜DSML｜invoke name="{call.name}">\n{pairs}</｜DSML｜invoke>'

    return f"<｜DSML｜function_calls>\n{_each(calls, chr(10), block)}\n</｜DSML｜function_calls>"


@form("DeepSeek V3")
def deepseek(calls: Sequence[Call], random: Random) -> str:
    def block(_: int, call: Call) -> str:
        inner = f"```json\n{compact(call.arguments)}\n```"
        return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call.name}\n{inner}<｜tool▁call▁end｜>"

    return f"<｜tool▁calls▁begin｜>{_each(calls, chr(10), block)}<｜tool▁calls▁end｜>"


@form("DeepSeek V3.1")
def newer_deepseek(calls: Sequence[Call], random: Random) -> str:
    def block(_: int, call: Call) -> str:
        return f"<｜tool▁call▁begin｜>{call.name}<｜tool▁sep｜>{compact(call.arguments)}<｜tool▁call▁end｜>"

    return f"<｜tool▁calls▁begin｜>{_each(calls, '', block)}<｜tool▁calls▁end｜>"


@form("harmony", before=0, thinks=0)
def harmony(calls: Sequence[Call], random: Random) -> str:
    """gpt-oss: the recipient stands behind the channel, or, as often, behind the role; thoughts have a channel of their own."""
    head = random.choice(
        [
            "commentary to=functions.{} <|constrain|>json<|message|>",
            "commentary to=functions.{} json<|message|>",
            "commentary to=functions.{}<|message|>",
        ]
    )
    thought = THOUGHT.format(name=calls[0].name, arguments=compact(calls[0].arguments))
    first = random.choice(["", f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant"])
    return first + _each(
        calls,
        "<|start|>assistant",
        lambda _, call: f"<|channel|>{head.format(call.name)}{any_json(call.arguments, random)}<|call|>",
    )


@form("Kimi")
def kimi(calls: Sequence[Call], random: Random) -> str:
    def block(index: int, call: Call) -> str:
        head = f"<|tool_call_begin|>functions.{call.name}:{index}<|tool_call_argument_begin|>"
        return f"{head}{compact(call.arguments)}<|tool_call_end|>"

    return f"<|tool_calls_section_begin|>{_each(calls, '', block)}<|tool_calls_section_end|>"


# Forms that nobody promised to read: found or not, they must never become another call.


@form("Phi 4, Granite `<|tool_call|>`", is_listed=False, before=0.2, thinks=0)
def granite(calls: Sequence[Call], random: Random) -> str:
    array = compact([{"name": call.name, "arguments": call.arguments} for call in calls])
    return f"<|tool_call|>{array}{random.choice(['', '<|/tool_call|>'])}"


@form("Command R `<|START_ACTION|>`", is_listed=False, before=0, thinks=0)
def command(calls: Sequence[Call], random: Random) -> str:
    array = [
        {"tool_call_id": str(index), "tool_name": call.name, "parameters": call.arguments}
        for index, call in enumerate(calls)
    ]
    return f"<|START_ACTION|>{json.dumps(array, indent=4, ensure_ascii=False)}<|END_ACTION|>"


@form("MiniMax `<minimax:tool_call>`", is_listed=False)
def minimax(calls: Sequence[Call], random: Random) -> str:
    return f"<minimax:tool_call>\n{_invoked(calls)}\n</minimax:tool_call>"


@form("`<function_calls><invoke>`", is_listed=False)
def invoked(calls: Sequence[Call], random: Random) -> str:
    return f"<function_calls>\n{_invoked(calls)}\n</function_calls>"


def _invoked(calls: Sequence[Call]) -> str:
    def pair(key: str, value: Json) -> str:
        return f'<parameter name="{key}">{value if isinstance(value, str) else compact(value)}</parameter>\n'

    def block(_: int, call: Call) -> str:
        return f'<invoke name="{call.name}">\n{"".join(pair(*item) for item in call.arguments.items())}</invoke>'

    return _each(calls, "\n", block)


@form("xLAM, bare array", is_listed=False, before=0, thinks=0)
def array(calls: Sequence[Call], random: Random) -> str:
    return compact([{"name": call.name, "arguments": call.arguments} for call in calls])


@form("Jamba `<tool_calls>`", is_listed=False)
def jamba(calls: Sequence[Call], random: Random) -> str:
    return f"<tool_calls>{array(calls, random)}</tool_calls>"
