"""Kinds of damaged calls, each with what was meant: one certain meaning, or none.

Written from what models and servers are known to send, without a look at the code that repairs.
"""

from __future__ import annotations

from json import dumps
from typing import Any, NamedTuple

TOOLS: dict[str, dict[str, Any]] = {
    "book_trip": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "count": {"type": "integer"},
            "price": {"type": "number"},
            "urgent": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "options": {
                "type": "object",
                "properties": {"size": {"enum": ["small", "large"]}, "note": {"type": "string"}},
                "required": ["size"],
                "additionalProperties": False,
            },
            "kind": {"type": "string", "enum": ["Hotel", "Flight"]},
            "guest_name": {"type": "string"},
            "day": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"},
        },
        "required": ["city", "count", "options"],
        "additionalProperties": False,
    },
    "read_file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "now": {"type": "object", "properties": {}},
}


class Damaged(NamedTuple):
    """A call as the model wrote it, and the arguments that were meant; None if there is no certain meaning."""

    kind: str
    tool: str
    raw: str
    meant: dict[str, Any] | None
    meant_tool: str = "book_trip"


FULL: dict[str, Any] = {
    "city": "Paris",
    "count": 2,
    "price": 9.5,
    "urgent": True,
    "tags": ["a", "b c"],
    "options": {"size": "small", "note": "ok"},
    "kind": "Hotel",
    "guest_name": "Zoe",
    "day": "2026-01-02",
}
HARD = {**FULL, "city": 'Paris, "FR"', "options": {"size": "small", "note": "one\ntwo"}, "guest_name": "Zoë O'Hara"}
SMALL = {"city": "Paris", "count": 2, "options": {"size": "small"}}
TEXT, HARD_TEXT, SMALL_TEXT = dumps(FULL), dumps(HARD), dumps(SMALL)


def _with(**members: Any) -> str:
    return dumps({**FULL, **members})


def _without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in FULL.items() if name not in names}


def _certain(**raws: str) -> list[Damaged]:
    return [Damaged(kind, "book_trip", raw, FULL) for kind, raw in raws.items()]


def _doubtful(**raws: str) -> list[Damaged]:
    return [Damaged(kind, "book_trip", raw, None) for kind, raw in raws.items()]


_WRITING = _certain(
    single_quotes=TEXT.replace('"', "'"),
    python=repr(FULL),
    trailing_comma=TEXT[:-1] + ",}",
    trailing_comma_in_a_list=TEXT.replace('"b c"]', '"b c",]'),
    missing_comma=TEXT.replace('"Paris", ', '"Paris" '),
    two_commas=TEXT.replace('"Paris", ', '"Paris",, '),
    semicolons=TEXT.replace(", ", "; "),
    unquoted_names="{" + ", ".join(f"{name}: {dumps(value)}" for name, value in FULL.items()) + "}",
    equals_signs=TEXT.replace(": ", " = "),
    smart_quotes=TEXT.replace('"Paris"', "“Paris”"),
    python_true=TEXT.replace("true", "True"),
    plus_sign=TEXT.replace('"count": 2', '"count": +2'),
    line_comment="{\n// where\n" + TEXT[1:],
    hash_comment="{\n# where\n" + TEXT[1:],
    block_comment="{/* where */" + TEXT[1:],
    missing_last_brace=TEXT[:-1],
    missing_inner_bracket=TEXT.replace('"b c"]', '"b c"'),
    wrong_last_bracket=TEXT[:-1] + "]",
    one_brace_more=TEXT + "}",
    two_braces="{" + TEXT + "}",
    all_quotes_escaped=TEXT.replace('"', '\\"'),
    entities=TEXT.replace('"', "&quot;"),
    byte_order_mark="\ufeff" + TEXT,
    member_twice=TEXT[:-1] + ', "count": 2}',
)
_AROUND = _certain(
    fence=f"```json\n{TEXT}\n```",
    plain_fence=f"```\n{TEXT}\n```",
    text_before=f"Here are the arguments: {TEXT}",
    text_after=f"{TEXT}\nI hope this helps.",
    tag=f"<arguments>{TEXT}</arguments>",
    call_tag=f'<tool_call>{{"name": "book_trip", "arguments": {TEXT}}}</tool_call>',
    function_call=f"book_trip({TEXT})",
    keyword_call="book_trip(" + ", ".join(f"{name}={value!r}" for name, value in FULL.items()) + ")",
    twice=TEXT + TEXT,
    twice_on_lines=f"{TEXT}\n{TEXT}",
    empty_object_before="{}" + TEXT,
    as_text=dumps(TEXT),
    as_text_twice=dumps(dumps(TEXT)),
    in_a_list=f"[{TEXT}]",
    in_arguments=f'{{"arguments": {TEXT}}}',
    in_name_and_arguments=f'{{"name": "book_trip", "arguments": {TEXT}}}',
    in_name_and_parameters=f'{{"name": "book_trip", "parameters": {TEXT}}}',
    in_the_tool=f'{{"book_trip": {TEXT}}}',
)
_VALUES = _certain(
    integer_as_text=_with(count="2"),
    integer_with_a_point=_with(count=2.0),
    number_as_text=_with(price="9.5"),
    boolean_as_text=_with(urgent="true"),
    boolean_as_python=_with(urgent="True"),
    boolean_as_yes=_with(urgent="yes"),
    boolean_as_one=_with(urgent=1),
    list_for_one=_with(city=["Paris"]),
    object_as_text=_with(options=dumps(FULL["options"])),
    list_as_text=_with(tags=dumps(FULL["tags"])),
    fixed_value_in_another_case=_with(kind="hotel"),
    inner_value_in_another_case=TEXT.replace('"small"', '"Small"'),
    names_in_another_case=TEXT.replace('"city"', '"City"').replace('"count"', '"COUNT"'),
    camel_case=TEXT.replace("guest_name", "guestName"),
    dashes=TEXT.replace("guest_name", "guest-name"),
    spaces_in_a_name=TEXT.replace('"city"', '" city "'),
)
_OTHERS = [
    Damaged("one_for_a_list", "book_trip", _with(tags="a"), {**FULL, "tags": ["a"]}),
    Damaged("number_for_a_text", "book_trip", _with(guest_name=12), {**FULL, "guest_name": "12"}),
    Damaged("null_for_optional", "book_trip", _with(price=None, tags=None), _without("price", "tags")),
    Damaged("raw_newline", "book_trip", HARD_TEXT.replace("\\n", "\n"), HARD),
    Damaged("escaped_apostrophe", "book_trip", HARD_TEXT.replace("O'Hara", "O\\'Hara"), HARD),
    Damaged("python_with_both_quotes", "book_trip", repr(HARD), HARD),
    Damaged("inner_quotes", "book_trip", TEXT.replace("Paris", 'a "b" c'), {**FULL, "city": 'a "b" c'}),
    Damaged("unknown_escape", "book_trip", TEXT.replace("Zoe", "a\\d"), {**FULL, "guest_name": "a\\d"}),
    Damaged("raw_tab", "book_trip", TEXT.replace("Zoe", "a\tb"), {**FULL, "guest_name": "a\tb"}),
    Damaged("camel_tool", "bookTrip", TEXT, FULL),
    Damaged("tool_with_prefix", "functions.book_trip", TEXT, FULL),
    Damaged("tool_in_another_case", "Book_Trip", TEXT, FULL),
    Damaged("no_arguments", "now", "", {}, "now"),
    Damaged("null_arguments", "now", "null", {}, "now"),
]
_DOUBTFUL = _doubtful(
    missing_last_brace_before_optional_members=SMALL_TEXT[:-1],
    two_different_objects=TEXT + _with(count=3),
    null_for_required=_with(city=None),
    unknown_member=_with(colour="red"),
    missing_member=dumps(_without("city")),
    missing_inner_member=_with(options={"note": "x"}),
    empty="",
    other_fixed_value=_with(kind="boat"),
    unit=_with(count="2 rooms"),
    fraction_for_an_integer=_with(count=2.5),
    thousands=_with(count="2,000"),
    object_for_a_text=_with(city={"name": "Paris"}),
    other_pattern=_with(day="tomorrow"),
    list_of_names_and_values=dumps(["city", "Paris"]),
    number="42",
    sentence="Paris please",
    boolean="true",
    cut_in_a_text=HARD_TEXT[:20],
    xml="<city>Paris</city><count>2</count>",
    one_object_for_each_member="\n".join(dumps({name: value}) for name, value in SMALL.items()),
)

CERTAIN: list[Damaged] = [*_WRITING, *_AROUND, *_VALUES, *_OTHERS]
DOUBTFUL: list[Damaged] = [*_DOUBTFUL, Damaged("unknown_tool", "rent_car", TEXT, None)]
