"""Damages inside a block: the JSON, its members, and the tool's name."""

from __future__ import annotations

import re
from typing import Any

from .borrowed import WRITINGS
from .cases import Call
from .damage import Damage, Speech, block, body, dumped, hit, register, right, tagged, whole

Json = Any


def _write_badly(name: str) -> None:
    """The whole object as almost-JSON, in one of the ways of bench/repairs, where its docstring says why it is clear."""
    write = WRITINGS[name]

    def badly(call: Call, speech: Speech) -> str | None:
        text = write({"name": call.name, "arguments": call.arguments}, speech.random)
        return None if text is None else tagged(text)

    register(Damage(name, "clear", "writing", lambda speech: hit(badly, speech)))


for _name in (name for name in WRITINGS if name != "whole_floats"):  # that one is legal JSON
    _write_badly(_name)


@block("members")
def arguments_as_string(call: Call, speech: Speech) -> str:
    """As vendors' APIs have it."""
    return tagged(dumped({"name": call.name, "arguments": dumped(call.arguments)}))


@block("members")
def arguments_as_string_twice(call: Call, speech: Speech) -> str:
    """A string of a string of an object."""
    return tagged(dumped({"name": call.name, "arguments": dumped(dumped(call.arguments))}))


@block("members")
def body_as_string(call: Call, speech: Speech) -> str:
    """The whole object is a string."""
    return tagged(dumped(body(call)))


@block("members")
def other_word_for_arguments(call: Call, speech: Speech) -> str:
    """Vendors have all of these."""
    key = speech.random.choice(["parameters", "args", "input", "params", "kwargs", "tool_input"])
    return tagged(dumped({"name": call.name, key: call.arguments}))


@block("members")
def other_word_for_name(call: Call, speech: Speech) -> str:
    """And these."""
    key = speech.random.choice(["tool", "tool_name", "function", "function_name"])
    return tagged(dumped({key: call.name, "arguments": call.arguments}))


@block("members")
def action_and_input(call: Call, speech: Speech) -> str:
    """As agents were once told to write."""
    return tagged(dumped({"action": call.name, "action_input": call.arguments}))


@block("members")
def as_in_chat_completions(call: Call, speech: Speech) -> str:
    """Name and arguments one level down; arguments as text."""
    arguments = dumped(call.arguments) if speech.random.random() < 0.7 else call.arguments
    inner = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
    return tagged(dumped({"id": "call_1", **inner} if speech.random.random() < 0.5 else inner))


@whole("members")
def list_of_tool_calls(speech: Speech) -> str:
    """A member that holds them all."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in speech.calls]
    return tagged(dumped({"tool_calls": calls}))


@block("members")
def missing_arguments(call: Call, speech: Speech) -> str | None:
    """Nothing to say, and nothing said."""
    return None if call.arguments else tagged(dumped({"name": call.name}))


@block("members")
def null_arguments(call: Call, speech: Speech) -> str | None:
    """The same."""
    return None if call.arguments else tagged(dumped({"name": call.name, "arguments": None}))


@block("members", "doubtful")
def forgotten_arguments(call: Call, speech: Speech) -> str | None:
    """Needed, and not there: a call with none is another call, and legal only where nothing was needed."""
    return tagged(dumped({"name": call.name})) if _needs(call, speech) else None


def _needs(call: Call, speech: Speech) -> bool:
    schema = next(tool.schema for tool in speech.tools if tool.name == call.name)
    return bool(isinstance(schema, dict) and schema.get("required"))


@block("members")
def extra_members(call: Call, speech: Speech) -> str:
    """More than was asked for, beside name and arguments."""
    more: dict[str, Json] = speech.random.choice(
        [{"id": "call_1"}, {"type": "function"}, {"reason": "as asked"}, {"thought": "now", "index": 0}]
    )
    inner = {"name": call.name, "arguments": call.arguments}
    return tagged(dumped({**more, **inner} if speech.random.random() < 0.5 else {**inner, **more}))


@block("members", "doubtful")
def flat_arguments(call: Call, speech: Speech) -> str | None:
    """Arguments beside the name: the schema knows them, unless one is called name."""
    if not call.arguments or {"name", "arguments"} & call.arguments.keys():
        return None
    return tagged(dumped({"name": call.name, **call.arguments}))


@block("members", "doubtful")
def name_as_key(call: Call, speech: Speech) -> str:
    """One member, whose name is the tool's."""
    return tagged(dumped({call.name: call.arguments}))


@block("members", "doubtful")
def name_before_arguments(call: Call, speech: Speech) -> str:
    """The name in words, the arguments as JSON."""
    return tagged(f"{call.name}\n{dumped(call.arguments)}")


@block("members", "doubtful")
def arguments_only(call: Call, speech: Speech) -> str:
    """No name: where two tools take the same, nobody can tell."""
    return tagged(dumped(call.arguments))


@block("members", "doubtful")
def python_call_inside(call: Call, speech: Speech) -> str:
    """A call, but as Python has it."""
    return tagged(f"{call.name}({', '.join(f'{key}={value!r}' for key, value in call.arguments.items())})")


@block("members", "doubtful")
def elements_inside(call: Call, speech: Speech) -> str:
    """XML where JSON was asked for."""
    return tagged(f"<name>{call.name}</name>\n<arguments>{dumped(call.arguments)}</arguments>")


@block("members", "doubtful")
def yaml_inside(call: Call, speech: Speech) -> str:
    """YAML takes JSON for a value."""
    return tagged(f"name: {call.name}\narguments: {dumped(call.arguments)}")


@block("members", "doubtful")
def empty_block(call: Call, speech: Speech) -> str:
    """A call of nothing."""
    return tagged(speech.random.choice(["", "{}", "null", "..."]))


@whole("members")
def array_wrapped(speech: Speech) -> str:
    """All calls in one block, as an array."""
    return tagged(f"[{', '.join(map(body, speech.calls))}]")


@whole("members")
def two_objects_in_a_tag(speech: Speech) -> str | None:
    """All calls in one block, one behind the other."""
    if len(speech.calls) < 2:
        return None
    return tagged(speech.random.choice(["\n", "", ",\n", "; "]).join(map(body, speech.calls)))


@block("names")
def name_with_prefix(call: Call, speech: Speech) -> str:
    """As vendors write it in their prompts."""
    prefix = speech.random.choice(["functions.", "tools.", "functions:", "default_api.", "functions/"])
    return right(Call(prefix + call.name, call.arguments))


@block("names")
def name_in_other_case(call: Call, speech: Speech) -> str | None:
    """One tool has this name in another spelling."""
    return _respelled(call, speech, speech.random.choice([str.upper, str.title, _camel, _dashed]))


def _camel(name: str) -> str:
    first, *rest = re.split("[_-]", name)
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _respelled(call: Call, speech: Speech, spell: Any) -> str | None:
    name = spell(call.name)
    alike = [tool for tool in speech.tools if _letters(tool.name) == _letters(name)]
    return right(Call(name, call.arguments)) if name != call.name and len(alike) == 1 else None


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


@block("names", "doubtful")
def name_misspelled(call: Call, speech: Speech) -> str:
    """Near a tool's name, but none."""
    place = speech.random.randrange(len(call.name))
    return right(Call(call.name[:place] + call.name[place + 1 :] + "s", call.arguments))


@block("names", "doubtful")
def unknown_name(call: Call, speech: Speech) -> str:
    """A tool that nobody offered."""
    return right(Call(speech.random.choice(["python", "search_the_web", "final_answer", "finish"]), call.arguments))


@block("names")
def parentheses_behind_name(call: Call, speech: Speech) -> str:
    """As one speaks of functions."""
    return right(Call(f"{call.name}()", call.arguments))


@block("names")
def blanks_around_name(call: Call, speech: Speech) -> str:
    """Blanks are no part of a name."""
    return right(Call(f" {call.name}\n", call.arguments))


@block("members")
def arguments_first(call: Call, speech: Speech) -> str:
    """The order of members means nothing."""
    return tagged(dumped({"arguments": call.arguments, "name": call.name}))
