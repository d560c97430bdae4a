"""Values that are not what the schema says, though every part of the call is there: types, encodings, wrappers, names."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from .damage import Case, Hope, register
from .samples import put

Json = Any
Path = tuple[Json, ...]
Bend = Callable[[Case], Json]

NOTHING = object()  # what a damage gives where the call has no place for it
BENDS: dict[str, Bend] = {}


def bend(hope: Hope = "repairable") -> Callable[[Bend], Bend]:
    def add(change: Bend) -> Bend:
        register("values", hope, change.__name__, lambda case: _written(change(case)))
        if hope == "repairable":
            BENDS[change.__name__] = change
        return change

    return add


def _written(value: Json) -> str | None:
    return None if value is NOTHING else json.dumps(value, ensure_ascii=False)


def places(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Every value below the root with its path, the deepest first."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in below:
        yield from places(item, (*path, step))
    if path:
        yield path, value


def replaced(value: Json, path: Path, new: Json) -> Json:
    changed = copy.deepcopy(value)
    put(changed, path, new)
    return changed


def swapped(case: Case, change: Callable[[Json], Json], everywhere: bool = False) -> Json:
    """One place (or all) changed, only where the change alone makes the call illegal: a legal string says what it says."""
    arguments = case.sample.arguments
    fit = []
    for path, value in places(arguments):
        new = change(value)
        if new is not NOTHING and not case.is_legal(replaced(arguments, path, new)):
            fit.append(path)
    if not fit:
        return NOTHING
    changed = copy.deepcopy(arguments)
    for path in fit if everywhere else [case.random.choice(fit)]:
        put(changed, path, change(_at(changed, path)))
    return changed


def _at(value: Json, path: Path) -> Json:
    for step in path:
        value = value[step]
    return value


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _encoded(value: Json) -> Json:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else NOTHING


@bend()
def one_encoded_inside(case: Case) -> Json:
    """An object or array as the text of itself, where no text is taken."""
    return swapped(case, _encoded)


@bend()
def all_encoded_inside(case: Case) -> Json:
    """The same at every depth, so that texts hold texts."""
    return swapped(case, _encoded, everywhere=True)


@bend()
def encoded_twice_inside(case: Case) -> Json:
    """The text of the text."""
    return swapped(case, lambda value: NOTHING if _encoded(value) is NOTHING else json.dumps(_encoded(value)))


@bend()
def python_encoded_inside(case: Case) -> Json:
    """As Python prints it, which is one value."""
    return swapped(case, lambda value: repr(value) if isinstance(value, dict | list) else NOTHING)


@bend()
def pretty_encoded_inside(case: Case) -> Json:
    """With line ends and spaces around."""
    return swapped(
        case, lambda value: f"\n{json.dumps(value, indent=2)}\n" if isinstance(value, dict | list) else NOTHING
    )


@bend()
def encoded_items(case: Case) -> Json:
    """An array of the texts of its objects."""
    return swapped(
        case,
        lambda value: (
            [json.dumps(item) for item in value]
            if isinstance(value, list) and value and all(isinstance(item, dict | list) for item in value)
            else NOTHING
        ),
    )


@bend()
def whole_encoded(case: Case) -> Json:
    """The arguments as a string."""
    return json.dumps(case.sample.arguments, ensure_ascii=False)


@bend()
def whole_encoded_twice(case: Case) -> Json:
    """And that as a string."""
    return json.dumps(json.dumps(case.sample.arguments))


@bend()
def single_for_array(case: Case) -> Json:
    """One value where an array is wanted, if it is not empty or a null, nor has a sign in it that may part several."""
    return swapped(case, lambda value: value[0] if _holds_one(value) and not _may_be_several(value[0]) else NOTHING)


@bend("doubtful")
def list_in_a_text(case: Case) -> Json:
    """ "a, b" may be one item or two."""
    return swapped(
        case,
        lambda value: (
            ", ".join(value)
            if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value)
            else NOTHING
        ),
    )


def _holds_one(value: Json) -> bool:
    return isinstance(value, list) and len(value) == 1 and not isinstance(value[0], list)


def _may_be_several(value: Json) -> bool:
    return isinstance(value, str) and (value in ("", "null", "None") or bool(re.search(r"[,;|\n]", value)))


@bend()
def array_for_single(case: Case) -> Json:
    """An array of one where its item is wanted."""
    return swapped(case, lambda value: NOTHING if isinstance(value, list) or value is None else [value])


@bend()
def numbers_as_texts(case: Case) -> Json:
    """The digits are all there."""
    return swapped(case, lambda value: json.dumps(value) if _is_number(value) else NOTHING, everywhere=True)


@bend()
def numbers_as_odd_texts(case: Case) -> Json:
    """With a sign, a fraction of zero, or spaces."""
    frame = case.random.choice([" {}", "{}\n", "+{}", "{}.0"])
    return swapped(
        case, lambda value: frame.format(value) if type(value) is int and value >= 0 else NOTHING, everywhere=True
    )


@bend()
def one_number_as_text(case: Case) -> Json:
    """The same, in one place."""
    return swapped(case, lambda value: json.dumps(value) if _is_number(value) else NOTHING)


@bend()
def booleans_as_texts(case: Case) -> Json:
    """A word for each, in any case."""
    style = case.random.choice(["lower", "upper", "capitalize"])
    return swapped(
        case, lambda value: getattr(str(value), style)() if isinstance(value, bool) else NOTHING, everywhere=True
    )


@bend()
def null_as_text(case: Case) -> Json:
    """ "null" or "None" where no text is taken and null is."""
    return swapped(case, lambda value: case.random.choice(["null", "None"]) if value is None else NOTHING)


@bend()
def xml_born(case: Case) -> Json:
    """Everything is text, as in XML; some of it with Python's spelling and with line ends around it."""
    frame = case.random.choice(["{}", "\n{}\n", " {} "])
    style = case.random.choice([json.dumps, repr])
    return swapped(
        case, lambda value: NOTHING if isinstance(value, str) else frame.format(style(value)), everywhere=True
    )


@bend()
def xml_born_outside(case: Case) -> Json:
    """The members of the root are text, what is in them is not: one call, parsed once."""
    return {
        name: value
        if isinstance(value, str) or case.is_legal({**case.sample.arguments, name: json.dumps(value)})
        else json.dumps(value, ensure_ascii=False)
        for name, value in case.sample.arguments.items()
    }


@bend()
def whole_floats_as_texts(case: Case) -> Json:
    """ "10.0" for an integer is 10."""
    return swapped(
        case, lambda value: str(float(value)) if type(value) is int and abs(value) < 2**53 else NOTHING, everywhere=True
    )


@bend()
def texts_as_numbers(case: Case) -> Json:
    """A text that is a number, without its quotes: its digits are its letters."""
    return swapped(case, lambda value: _unquoted(value, r"-?(0|[1-9]\d*)(\.\d+)?"))


@bend("doubtful")
def texts_as_literals(case: Case) -> Json:
    """The text may have been "true" or "True"."""
    return swapped(case, lambda value: _unquoted(value, r"true|false"))


def _unquoted(value: Json, pattern: str) -> Json:
    is_one = isinstance(value, str) and re.fullmatch(pattern, value.lower()) and len(value) < 30
    return json.loads(value.lower()) if is_one and json.dumps(json.loads(value.lower())) == value.lower() else NOTHING


@bend()
def numbers_for_booleans(case: Case) -> Json:
    """0 and 1, and no others."""
    return swapped(case, lambda value: int(value) if isinstance(value, bool) else NOTHING)


@bend()
def yes_and_no(case: Case) -> Json:
    """Where only true and false are taken."""
    return swapped(case, lambda value: ("no", "yes")[value] if isinstance(value, bool) else NOTHING)


@bend("doubtful")
def numbers_with_commas(case: Case) -> Json:
    """1,500 is a thousand and a half here, and one and a half there."""
    return swapped(case, lambda value: f"{value:,}" if _is_number(value) and abs(value) >= 1000 else NOTHING)


@bend("doubtful")
def numbers_with_units(case: Case) -> Json:
    """What was meant by 30 minutes is the tool's to say."""
    unit = case.random.choice([" minutes", "%", "k", " USD", "px"])
    return swapped(case, lambda value: f"{value}{unit}" if _is_number(value) else NOTHING)


@bend("doubtful")
def fractions_for_integers(case: Case) -> Json:
    """10.5 is no integer, and neither 10 nor 11 was said."""
    return swapped(case, lambda value: value + 0.5 if type(value) is int else NOTHING)


def _absent(case: Case) -> list[str]:
    known = case.sample.schema.get("properties", {})
    return [
        name
        for name in known
        if name not in case.sample.arguments and name not in case.sample.schema.get("required", [])
    ]


def _filled(case: Case, filler: Json, count: int) -> Json:
    fit = [name for name in _absent(case) if not case.is_legal({**case.sample.arguments, name: filler})]
    return {**case.sample.arguments, **dict.fromkeys(fit[:count], filler)} if fit else NOTHING


@bend()
def null_for_absent(case: Case) -> Json:
    """An optional member that takes no null, given as null: it is absent."""
    return _filled(case, None, 1)


@bend()
def nulls_for_all_absent(case: Case) -> Json:
    """All of them, as strict modes make models write."""
    return _filled(case, None, 100)


@bend()
def null_text_for_absent(case: Case) -> Json:
    """The same as XML has it, where neither a text is taken nor a list, whose only item the word might be."""
    filled = _filled(case, case.random.choice(["null", "None"]), 1)
    if filled is NOTHING or case.is_legal({**filled, list(filled)[-1]: []}):
        return NOTHING
    return filled


@bend("doubtful")
def empty_for_absent(case: Case) -> Json:
    """An empty text where a number or an array is optional: left out, zero, or empty."""
    return _filled(case, "", 1)


@bend("doubtful")
def unknown_member(case: Case) -> Json:
    """A member that the tool does not take may be one that was misspelt: what it was to do is not ours to drop."""
    more = {**case.sample.arguments, "explanation_of_call": "to find it"}
    return NOTHING if case.is_legal(more) else more


@bend("doubtful")
def missing_member(case: Case) -> Json:
    """What was not said cannot be known."""
    names = [name for name in case.sample.schema.get("required", []) if name in case.sample.arguments]
    fit = [name for name in names if not case.is_legal(_without(case.sample.arguments, name))]
    return _without(case.sample.arguments, case.random.choice(fit)) if fit else NOTHING


def _without(value: dict[str, Json], name: str) -> dict[str, Json]:
    return {key: below for key, below in value.items() if key != name}


def _renamed(case: Case, change: Callable[[str], str]) -> Json:
    """One known key written otherwise, where that is not legal."""
    arguments, known = case.sample.arguments, case.sample.schema.get("properties", {})
    fit = []
    for name in arguments:
        new = change(name)
        if name in known and new != name and new not in known:
            changed = {(new if key == name else key): value for key, value in arguments.items()}
            fit += [] if case.is_legal(changed) else [changed]
    return case.random.choice(fit) if fit else NOTHING


@bend()
def camel_keys(case: Case) -> Json:
    """maxResults is max_results where that is missing."""
    return _renamed(case, lambda name: re.sub(r"_(\w)", lambda found: found[1].upper(), name))


@bend()
def capital_keys(case: Case) -> Json:
    """City is city."""
    return _renamed(case, str.capitalize)


@bend()
def dashed_keys(case: Case) -> Json:
    """max-results, or max results."""
    return _renamed(case, lambda name: name.replace("_", case.random.choice("- ")))


@bend()
def spaced_keys(case: Case) -> Json:
    """A key with spaces or quotes around it."""
    return _renamed(case, case.random.choice([" {}", "{} ", '"{}"', "'{}'"]).format)


@bend()
def marked_keys(case: Case) -> Json:
    """A key with a sign of another language."""
    return _renamed(case, case.random.choice(["${}", "--{}", "@{}", "{}:"]).format)


@bend()
def enum_case(case: Case) -> Json:
    """One of the listed words, louder or with spaces around."""
    style = case.random.choice([str.upper, str.capitalize, str.lower, " {}".format, "{}\n".format])
    words = set(_listed(case.sample.schema))
    return swapped(
        case,
        lambda value: style(value) if isinstance(value, str) and value in words and style(value) != value else NOTHING,
    )


def _listed(schema: Json) -> Iterator[str]:
    if isinstance(schema, dict):
        listed = schema.get("enum")
        yield from (word for word in (listed if isinstance(listed, list) else []) if isinstance(word, str))
    for below in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _listed(below)


@bend("doubtful")
def enum_misspelt(case: Case) -> Json:
    """A word that is not in the list, though one like it is."""
    words = set(_listed(case.sample.schema))
    return swapped(
        case, lambda value: value[:-1] if isinstance(value, str) and value in words and len(value) > 1 else NOTHING
    )


def _envelope(name: str, wrap: Callable[[str, Json], Json]) -> None:
    def change(case: Case) -> Json:
        wrapped = wrap(case.sample.tool, case.sample.arguments)
        return NOTHING if case.is_legal(wrapped) else wrapped

    change.__name__ = name
    change.__doc__ = "The arguments in an envelope that the tool does not take: there is one thing inside."
    bend()(change)


_envelope("in_arguments", lambda tool, value: {"arguments": value})
_envelope("in_parameters", lambda tool, value: {"parameters": value})
_envelope("in_input", lambda tool, value: {"input": value})
_envelope("in_args_encoded", lambda tool, value: {"args": json.dumps(value)})
_envelope("in_name_and_arguments", lambda tool, value: {"name": tool, "arguments": value})
_envelope("in_name_and_encoded_arguments", lambda tool, value: {"name": tool, "arguments": json.dumps(value)})
_envelope("in_tool_name", lambda tool, value: {tool: value})
_envelope("in_array", lambda tool, value: [value])
_envelope("in_function", lambda tool, value: {"type": "function", "function": {"name": tool, "arguments": value}})
_envelope("in_tool_use", lambda tool, value: {"type": "tool_use", "id": "toolu_1", "name": tool, "input": value})
_envelope("in_array_of_calls", lambda tool, value: [{"name": tool, "parameters": value}])
_envelope("in_array_twice", lambda tool, value: [value, value])
_envelope("in_unknown_name", lambda tool, value: {"payload_of_call": value})
_envelope("in_action_input", lambda tool, value: {"action": tool, "action_input": value})
_envelope("in_properties", lambda tool, value: {"type": "object", "properties": value})
