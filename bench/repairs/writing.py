"""Values written as almost-JSON: damages of quotes, commas, keys, literals, escapes and spaces."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from .damage import Hope, register

Json = Any
Write = Callable[[Json, Random], str | None]

WRITINGS: dict[str, Write] = {}


@dataclass(frozen=True)
class Token:
    """kind is the sign itself for { } [ ] , : and else key, string, number or literal."""

    kind: str
    value: Json = None


def tokens(value: Json) -> Iterator[Token]:
    if isinstance(value, dict):
        yield Token("{")
        for index, (name, below) in enumerate(value.items()):
            yield from [Token(",")] if index else []
            yield from (Token("key", name), Token(":"))
            yield from tokens(below)
        yield Token("}")
    elif isinstance(value, list):
        yield Token("[")
        for index, below in enumerate(value):
            yield from [Token(",")] if index else []
            yield from tokens(below)
        yield Token("]")
    elif isinstance(value, str):
        yield Token("string", value)
    elif isinstance(value, bool) or value is None:
        yield Token("literal", value)
    else:
        yield Token("number", value)


def plain(token: Token) -> str:
    """As json.dumps would write it, and not escaping what needs no escape."""
    if token.kind in (",", ":"):
        return token.kind + " "
    return token.kind if token.kind in "{}[]" else json.dumps(token.value, ensure_ascii=False)


def texts(value: Json) -> list[str]:
    """All keys and strings in a value."""
    return [token.value for token in tokens(value) if token.kind in ("key", "string")]


def strings(value: Json) -> list[str]:
    return [token.value for token in tokens(value) if token.kind == "string"]


def writing(hope: Hope = "repairable") -> Callable[[Write], Write]:
    def add(write: Write) -> Write:
        register("writing", hope, write.__name__, lambda case: write(case.sample.arguments, case.random))
        if hope == "repairable":
            WRITINGS[write.__name__] = write
        return write

    return add


def written(value: Json, write: Callable[[Token], str]) -> str:
    return "".join(map(write, tokens(value)))


def quoted(text: str, quote: str) -> str:
    """A JSON string, delimited by another sign than the usual one."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return quote + inner.replace(quote, "\\" + quote) + quote


def changed(value: Json, kind: str, change: Callable[[Json], str | None]) -> str | None:
    """The text with all tokens of a kind written otherwise; None if that changes nothing."""

    def write(token: Token) -> str:
        new = change(token.value) if token.kind == kind else None
        return plain(token) if new is None else new

    text = written(value, write)
    return None if text == written(value, plain) else text


@writing()
def single_quotes(value: Json, random: Random) -> str | None:
    """The delimiter is another, apostrophes inside are escaped: every string still ends in one place."""
    return written(value, lambda token: quoted(token.value, "'") if token.kind in ("key", "string") else plain(token))


@writing()
def python_repr(value: Json, random: Random) -> str | None:
    """A Python literal, which has one value."""
    return repr(value)


@writing()
def python_literals(value: Json, random: Random) -> str | None:
    """True, False and None stand for one literal each."""
    return changed(value, "literal", repr)


@writing()
def upper_literals(value: Json, random: Random) -> str | None:
    """TRUE and NULL are the same words, louder."""
    return changed(value, "literal", lambda literal: json.dumps(literal).upper())


@writing()
def trailing_commas(value: Json, random: Random) -> str | None:
    """A comma before a closing bracket parts nothing."""
    text = re.sub(r"(?<![{\[])\x00([}\]])", r",\1", _marked(value))
    return text.replace("\x00", "") if "," in text else None


def _marked(value: Json) -> str:
    return written(value, lambda token: "\x00" + token.kind if token.kind in "}]" else plain(token))


@writing()
def missing_comma(value: Json, random: Random) -> str | None:
    """A value ends and another begins: only a comma can be between them."""
    found = list(tokens(value))
    commas = [index for index, token in enumerate(found) if token.kind == ","]
    if not commas:
        return None
    lost = random.choice(commas)
    return "".join(" " if index == lost else plain(token) for index, token in enumerate(found))


@writing()
def newlines_for_commas(value: Json, random: Random) -> str | None:
    """One member a line, and no comma at all."""
    text = written(value, lambda token: "\n  " if token.kind == "," else plain(token))
    return text if "\n  " in text else None


@writing()
def double_commas(value: Json, random: Random) -> str | None:
    """Between two commas of an object there is nothing, and nothing is no member; in an array an item may be lost."""
    text = re.sub(r',(?= "[^"\\]+": )', ",,", written(value, plain))
    return text if ",, " in text and not any('": ' in inside for inside in strings(value)) else None


@writing()
def semicolons_for_commas(value: Json, random: Random) -> str | None:
    """Between two members a semicolon parts as a comma does."""
    text = written(value, lambda token: "; " if token.kind == "," else plain(token))
    return text if "; " in text else None


@writing()
def unquoted_keys(value: Json, random: Random) -> str | None:
    """As in JavaScript; keys that are not words keep their quotes."""
    return changed(value, "key", lambda key: key if re.fullmatch(r"[A-Za-z_$][\w$]*", key) else None)


@writing()
def unquoted_keys_single_quotes(value: Json, random: Random) -> str | None:
    """A JavaScript object literal."""

    def write(token: Token) -> str:
        if token.kind == "key" and re.fullmatch(r"[A-Za-z_]\w*", token.value):
            return str(token.value)
        return quoted(token.value, "'") if token.kind in ("key", "string") else plain(token)

    return written(value, write)


@writing()
def backtick_strings(value: Json, random: Random) -> str | None:
    """A JavaScript template without places for values."""
    if any("$" in text or "`" in text for text in strings(value)):
        return None
    return changed(value, "string", lambda text: quoted(text, "`"))


@writing()
def triple_quotes(value: Json, random: Random) -> str | None:
    """Python's long strings: nothing inside needs an escape."""
    if not any("\n" in text for text in strings(value)) or any(
        '"""' in x or "\\" in x or x[-1:] == '"' for x in texts(value)
    ):
        return None
    return changed(value, "string", lambda text: f'"""{text}"""' if "\n" in text else None)


@writing()
def line_comments(value: Json, random: Random) -> str | None:
    """What follows // on a line outside a string is for people."""
    text = written(value, lambda token: ", // as asked\n" if token.kind == "," else plain(token))
    return text if "//" in text else text[:-1] + " // done\n}"


@writing()
def hash_comments(value: Json, random: Random) -> str | None:
    """The same in Python's way."""
    text = written(value, lambda token: ",  # as asked\n" if token.kind == "," else plain(token))
    return text if "  # " in text else text[:-1] + "  # done\n}"


@writing()
def block_comments(value: Json, random: Random) -> str | None:
    """And in C's."""
    return written(value, lambda token: ": /* chosen, 'by' me */ " if token.kind == ":" else plain(token))


@writing()
def raw_newlines(value: Json, random: Random) -> str | None:
    """Line ends and tabs as they are, inside strings: strings still end at their quotes."""

    def raw(text: str) -> str:
        return (
            json.dumps(text, ensure_ascii=False)
            .replace("\\\\", "\0")
            .replace("\\n", "\n")
            .replace("\\t", "\t")
            .replace("\0", "\\\\")
        )

    return changed(value, "string", raw)


@writing()
def smart_quotes(value: Json, random: Random) -> str | None:
    """Typographic delimiters, where no string holds one itself."""
    if any(sign in text for text in texts(value) for sign in '“”"'):
        return None
    return written(
        value, lambda token: quoted(token.value, "“")[:-1] + "”" if token.kind in ("key", "string") else plain(token)
    )


@writing()
def full_width_signs(value: Json, random: Random) -> str | None:
    """Commas and colons from a Chinese keyboard, outside strings."""
    signs = {",": "，", ":": "："}
    return written(value, lambda token: signs.get(token.kind) or plain(token))


@writing()
def odd_spaces(value: Json, random: Random) -> str | None:
    """Spaces that JSON does not know, between tokens."""
    return written(
        value,
        lambda token: token.kind + random.choice("\xa0\u200b\u3000\ufeff") if token.kind in ",:" else plain(token),
    )


@writing()
def bare_inner_quotes(value: Json, random: Random) -> str | None:
    """Quotes inside a string without their backslash, none of them where a string could end or begin."""
    inside = [text for text in strings(value) if '"' in text]
    if not inside or any(re.search(r'"\s*([,:}\]\n]|$)|(^|[,:{\[\n])\s*"', text) for text in inside):
        return None
    return changed(value, "string", lambda text: json.dumps(text, ensure_ascii=False).replace('\\"', '"'))


@writing("doubtful")
def any_inner_quotes(value: Json, random: Random) -> str | None:
    """Quotes anywhere: where one is followed by a comma, the string may have ended there."""
    return changed(value, "string", lambda text: json.dumps(text, ensure_ascii=False).replace('\\"', '"'))


@writing()
def escaped_apostrophes(value: Json, random: Random) -> str | None:
    r"""\' is an escape in every language but this one."""
    return changed(value, "string", lambda text: json.dumps(text, ensure_ascii=False).replace("'", "\\'"))


@writing()
def single_backslashes(value: Json, random: Random) -> str | None:
    r"""\d can only be a backslash that was not doubled; strings with a backslash before bfnrtu"\/ are left alone."""
    inside = [text for text in strings(value) if "\\" in text]
    if not inside or any(re.search(r"\\([bfnrtu\"\\/'x]|$)", text) or re.search(r"[\n\t\"]", text) for text in inside):
        return None
    return changed(value, "string", lambda text: json.dumps(text, ensure_ascii=False).replace("\\\\", "\\"))


@writing("doubtful")
def backslashes_that_say_something(value: Json, random: Random) -> str | None:
    r"""In C:\Users\name the second is the escape of a line end: nobody can tell which were meant."""
    inside = [text for text in strings(value) if re.search(r"\\[bfnrtu]", text)]
    return changed(value, "string", lambda text: f'"{text}"' if text in inside and '"' not in text else None)


@writing("doubtful")
def python_hex_escapes(value: Json, random: Random) -> str | None:
    r"""\xe9 is one character in Python; between JSON's quotes it may also be a backslash that was not doubled."""

    def escape(text: str) -> str:
        return re.sub("[\x80-\xff]", lambda found: f"\\x{ord(found[0]):02x}", json.dumps(text, ensure_ascii=False))

    return changed(value, "string", escape)


@writing()
def tuples(value: Json, random: Random) -> str | None:
    """Python's other list; one item has a comma after it, so that it is one."""
    found = list(tokens(value))
    if not any(token.kind == "[" for token in found):
        return None
    signs = {"[": "(", "]": ",)"}
    text = "".join(signs.get(token.kind) or plain(token) for token in found)
    return text.replace("(,)", "()")


@writing()
def odd_numbers(value: Json, random: Random) -> str | None:
    """+5, .5 and 5. are numbers everywhere else."""

    def odd(number: Json) -> str:
        text = json.dumps(number)
        if re.fullmatch(r"0\.\d+", text):
            return text[1:]
        return text[:-1] if re.fullmatch(r"-?\d+\.0", text) else "+" + text if number >= 0 else text

    return changed(value, "number", odd)


@writing()
def whole_floats(value: Json, random: Random) -> str | None:
    """10.0 is the integer 10, and JSON Schema says so: it is legal, and must stay what it is."""
    return changed(value, "number", lambda number: f"{number}.0" if type(number) is int else None)


@writing("doubtful")
def not_a_number(value: Json, random: Random) -> str | None:
    """NaN and Infinity are no JSON numbers, and no others can be told from them."""
    return changed(value, "number", lambda number: random.choice(["NaN", "Infinity", "-Infinity"]))


@writing("doubtful")
def leading_zeros(value: Json, random: Random) -> str | None:
    """010 is eight or ten or a text."""
    return changed(value, "number", lambda number: f"0{number}" if number >= 0 and isinstance(number, int) else None)


@writing()
def escaped_quotes_everywhere(value: Json, random: Random) -> str | None:
    """A string's inside without the string around it."""
    return json.dumps(json.dumps(value, ensure_ascii=False), ensure_ascii=False)[1:-1]


@writing()
def key_without_opening_quote(value: Json, random: Random) -> str | None:
    """A word between a comma and its closing quote and colon is a key."""
    return changed(value, "key", lambda key: f'{key}"' if re.fullmatch(r"\w+", key) else None)


@writing()
def equals_for_colons(value: Json, random: Random) -> str | None:
    """After a quoted key, = or => can only part it from its value."""
    sign = random.choice([" = ", " => "])
    return written(value, lambda token: sign if token.kind == ":" else plain(token))


@writing()
def all_at_once(value: Json, random: Random) -> str | None:
    """Python's literals, bare keys, trailing commas and comments together."""

    def write(token: Token) -> str:
        if token.kind == "literal":
            return repr(token.value)
        if token.kind == "key" and re.fullmatch(r"[A-Za-z_]\w*", token.value):
            return f"\n  {token.value}"
        return ",  # next\n" if token.kind == "," else plain(token)

    text = written(value, write)
    return text[:-1] + ",\n}" if value and isinstance(value, dict) else None


@writing()
def entities(value: Json, random: Random) -> str | None:
    """Quotes as XML writes them, and with them all that XML escapes."""
    return html.escape(json.dumps(value, ensure_ascii=False)) if texts(value) else None


@writing()
def unquoted_words(value: Json, random: Random) -> str | None:
    """Values of words without quotes, where the next key or the brace ends them."""
    if not isinstance(value, dict):
        return None
    members = [(name, _bare(inner)) for name, inner in value.items()]
    text = ", ".join(f'"{name}": {inner}' for name, inner in members)
    return None if text == json.dumps(value, ensure_ascii=False)[1:-1] else "{" + text + "}"


def _bare(value: Json) -> str:
    is_words = isinstance(value, str) and re.fullmatch(r"[^\W\d_]+( [^\W\d_]+)*", value)
    is_literal = is_words and value.lower() in ("true", "false", "null", "none", "nan", "undefined")
    return str(value) if is_words and not is_literal else json.dumps(value, ensure_ascii=False)


@writing("doubtful")
def unquoted_texts(value: Json, random: Random) -> str | None:
    """Any text without quotes: its own commas and colons part it. (One that is "null" or quoted would be another damage.)"""
    return changed(value, "string", lambda text: None if text == "null" or text[:1] in ("'", '"', "`") else text)
