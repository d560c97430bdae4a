"""Numbers and texts that fit the simple rules of a JSON Schema, the smallest first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import count

from ...types import Json, JsonObject
from .schema_check import exact, is_number

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LONGEST = 10_000
_LARGEST = 1.7e308
_VARIANTS = 28
# The number makes them differ; it stays a legal day of a month.
_FORMATS = {
    "date": "2025-01-{:02d}",
    "date-time": "2025-01-{:02d}T00:00:00Z",
    "time": "00:00:{:02d}Z",
    "duration": "P{}D",
    "email": "user{}@example.com",
    "idn-email": "user{}@example.com",
    "hostname": "host{}.example.com",
    "idn-hostname": "host{}.example.com",
    "ipv4": "192.0.2.{}",
    "ipv6": "::{}",
    "uri": "https://example.com/{}",
    "url": "https://example.com/{}",
    "uri-reference": "https://example.com/{}",
    "iri": "https://example.com/{}",
    "iri-reference": "https://example.com/{}",
    "uri-template": "https://example.com/{}",
    "uuid": "00000000-0000-4000-8000-0000000000{:02d}",
    "json-pointer": "/{}",
    "relative-json-pointer": "{}",
    "regex": "a{}",
}


def numbers(rules: JsonObject, *, is_whole: bool) -> Iterator[int | float]:
    """Those nearest to zero first; without bounds there is no end of them."""
    low = _edge(rules, "minimum", "exclusiveMinimum", max)
    high = _edge(rules, "maximum", "exclusiveMaximum", min)
    multiple = rules.get("multipleOf")
    step = exact(multiple) if is_number(multiple) and multiple > 0 else Fraction(1)
    if is_whole:
        step = Fraction(step.numerator)
    first = math.ceil(low / step) if low is not None and low > 0 else 0
    if high is not None and high < 0:
        first = math.floor(high / step)
    yield written(first * step)
    if multiple is None and not is_whole:
        yield from _between(low, high)
    for number in count(1):
        above, below = (first + number) * step, (first - number) * step
        if high is None or above <= high:
            yield written(above)
        if low is None or below >= low:
            yield written(below)
        if high is not None and low is not None and above > high and below < low:
            return


def formatted(name: object) -> Iterator[str]:
    """Texts in a format of JSON Schema; none where the format is unknown."""
    template = _FORMATS.get(name) if isinstance(name, str) else None
    if template is not None:
        yield from (template.format(number) for number in range(1, _VARIANTS + 1))


def spelled(least: int) -> Iterator[str]:
    """a, b, c, ... ba, bb and so on, filled up to the least length."""
    for number in count():
        letters = ""
        while number or not letters:
            number, letter = divmod(number, len(_LETTERS))
            letters = _LETTERS[letter] + letters
        yield letters.rjust(least, "a")


def size(rule: Json) -> int:
    """A length that a schema asks for; more than anyone needs counts as the most that is made."""
    return min(max(0, math.ceil(rule)), _LONGEST) if is_number(rule) and math.isfinite(rule) else 0


def written(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def number_in(text: str) -> int | float | None:
    """The number that a text is."""
    if len(text) > 30 or not text.isascii():
        return None
    try:
        return int(text) if text.lstrip("-").isdigit() else _finite(float(text))
    except ValueError:
        return None


def plain_number(number: Decimal) -> int | float:
    """What json can write; a number beyond a float is the largest float."""
    value = float(number)
    if not math.isfinite(value):
        return math.copysign(_LARGEST, value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _edge(
    rules: JsonObject, inclusive: str, exclusive: str, choose: Callable[[list[Fraction]], Fraction]
) -> Fraction | None:
    """The bound; an exclusive one is left for the checker to keep."""
    given = [rules.get(inclusive), rules.get(exclusive)]
    found = [exact(bound) for bound in given if is_number(bound) and math.isfinite(bound)]
    return choose(found) if found else None


def _between(low: Fraction | None, high: Fraction | None) -> Iterator[int | float]:
    if low is not None and high is not None:
        yield from (written(low), written((low + high) / 2), written(high))
        yield from (written(low + (high - low) * Fraction(place, 32)) for place in range(1, 32))
    elif low is not None or high is not None:
        yield written(low if low is not None else high or Fraction(0))
