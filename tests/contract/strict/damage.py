"""The ways in which clients break a conversation: each function takes the items and returns damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.contract.strict.conversation import Item, Talk

Way: TypeAlias = Callable[[Talk, list[Item]], list[Item]]
WAYS: dict[str, Way] = {}
_BLANKS = ("", " ", "\n\n", "\t \n")
_FOREIGN = (
    "functions.Bash:{n}",
    "call {n} with spaces",
    "appel_é_{n}",
    "x" * 75 + "_{n:07d}",
    "Read:{n}",
    "{n}",
    "-{n}",
    "工具{n}",
)


def way(function: Way) -> Way:
    WAYS[function.__name__] = function
    return function


def _places(items: list[Item], *kinds: str) -> list[int]:
    return [place for place, item in enumerate(items) if item.kind in kinds]


def _any(talk: Talk, items: list[Item], *kinds: str) -> int | None:
    places = _places(items, *kinds)
    return talk.random.choice(places) if places else None


def _spot(talk: Talk, items: list[Item]) -> int:
    return talk.random.randint(0, len(items))


def _without(items: list[Item], place: int | None) -> list[Item]:
    return items if place is None else items[:place] + items[place + 1 :]


def _with(items: list[Item], place: int, *new: Item) -> list[Item]:
    return [*items[:place], *new, *items[place:]]


@way
def interrupted_call(talk: Talk, items: list[Item]) -> list[Item]:
    return _without(items, _any(talk, items, "result"))


@way
def interrupted_at_the_end(talk: Talk, items: list[Item]) -> list[Item]:
    return [*items, *(item for item in talk.step() if item.kind != "result")]


@way
def no_results_at_all(talk: Talk, items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind != "result"]


@way
def orphan_result(talk: Talk, items: list[Item]) -> list[Item]:
    orphan = talk.result(talk.call())
    orphan.is_error = talk.random.random() < 0.3
    return _with(items, _spot(talk, items), orphan)


@way
def lost_call(talk: Talk, items: list[Item]) -> list[Item]:
    return _without(items, _any(talk, items, "call"))


@way
def no_calls_at_all(talk: Talk, items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind != "call"]


@way
def result_twice(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    if place is None:
        return items
    text = items[place].text if talk.random.random() < 0.5 else talk.text("but now", "again")
    spot = talk.random.choice((place + 1, len(items), _spot(talk, items)))
    return _with(items, spot, items[place].copy(text=text))


@way
def call_twice(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "call")
    if place is None:
        return items
    call = items[place]
    copy = call.copy(text=call.text if talk.random.random() < 0.5 else talk.call().text)
    if copy.form != "function":
        copy.text = call.text
    new = [copy, talk.result(copy)] if talk.random.random() < 0.3 else [copy]
    if talk.random.random() < 0.5:
        return _with(items, place + 1, *new)
    copy.item_id = talk.item_id_for("fc", "n") if copy.form == "function" else ""
    return _with(items, _spot(talk, items), *new)


@way
def ids_used_again(talk: Talk, items: list[Item]) -> list[Item]:
    """Numbering that restarts in every turn, as some back ends do."""
    names: dict[str, str] = {}
    number = 0
    written = []
    for item in items:
        if item.kind in ("user", "say"):
            number = 0
        if item.kind == "call" and item.form in ("function", "custom"):
            names[item.id] = f"call_{number}"
            number += 1
        if item.kind in ("call", "result"):
            item = item.copy(id=names.get(item.id, item.id))
        written.append(item)
    return written


@way
def tool_name_as_id(talk: Talk, items: list[Item]) -> list[Item]:
    return [
        item.copy(id=item.name) if item.kind in ("call", "result") and item.form in ("function", "custom") else item
        for item in items
    ]


@way
def foreign_ids(talk: Talk, items: list[Item]) -> list[Item]:
    style = talk.random.choice(_FOREIGN)
    names: dict[str, str] = {}
    for item in items:
        if item.kind in ("call", "result") and item.id:
            names.setdefault(item.id, style.format(n=len(names)))
    return [item.copy(id=names.get(item.id, item.id)) if item.kind in ("call", "result") else item for item in items]


@way
def alike_ids(talk: Talk, items: list[Item]) -> list[Item]:
    """Different ids that become equal if illegal characters are replaced."""
    names: dict[str, str] = {}
    for item in items:
        if item.kind == "call":
            names.setdefault(item.id, "a" + ".:/ é"[len(names) % 5] + "b" * (len(names) // 5))
    return [item.copy(id=names.get(item.id, item.id)) if item.kind in ("call", "result") else item for item in items]


@way
def results_swapped(talk: Talk, items: list[Item]) -> list[Item]:
    places = _places(items, "result")
    if len(places) < 2:
        return items
    first, second = talk.random.sample(places, 2)
    items = list(items)
    items[first], items[second] = items[second], items[first]
    return items


@way
def result_elsewhere(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    if place is None:
        return items
    rest = _without(items, place)
    return _with(rest, _spot(talk, rest), items[place])


@way
def result_before_its_call(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    if place is None:
        return items
    call = next((n for n in range(place) if items[n].kind == "call" and items[n].id == items[place].id), None)
    return items if call is None else _with(_without(items, place), call, items[place])


@way
def words_between(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    kind = talk.random.choice(("system", "developer", "user", "say"))
    return items if place is None else _with(items, place, Item(kind, talk.text("By the way", "Remember")))


@way
def result_in_the_answer(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    if place is not None:
        items = [*items[:place], items[place].copy(place="assistant"), *items[place + 1 :]]
    return items


@way
def call_of_the_user(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "call")
    if place is not None:
        items = [*items[:place], items[place].copy(place="user"), *items[place + 1 :]]
    return items


@way
def words_behind_a_call(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "call")
    if place is None:
        return items
    is_last = place + 1 == len(items) or not items[place + 1].is_answer
    new = talk.thought() if is_last and talk.random.random() < 0.5 else Item("say", talk.text("So", "Then"))
    return _with(items, place + 1, new)


@way
def blank_words(talk: Talk, items: list[Item]) -> list[Item]:
    for _ in range(talk.random.randint(1, 4)):
        kind = talk.random.choice(("user", "say", "say", "system", "developer"))
        items = _with(items, _spot(talk, items), Item(kind, talk.random.choice(_BLANKS)))
    return items


@way
def words_gone(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "user", "say", "result", "system")
    if place is not None:
        items = [*items[:place], items[place].copy(text=talk.random.choice(_BLANKS)), *items[place + 1 :]]
    return items


@way
def bad_arguments(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "call")
    if place is None or items[place].form != "function":
        return items
    text, word = items[place].text, talk.mark()
    broken = talk.random.choice(
        (
            text[:-3],
            text[:9],
            "",
            "null",
            f'["{word}"]',
            f'"{word}"',
            word,
            "12",
            f'{{"a": "{word}"}}{{"a": 1}}',
            "{}}",
            "NaN",
        )
    )
    return [*items[:place], items[place].copy(text=broken), *items[place + 1 :]]


@way
def cut_at_the_front(talk: Talk, items: list[Item]) -> list[Item]:
    cut = talk.random.randint(0, max(0, len(items) - 1))
    head = [item for item in items[:1] if item.kind == "system" and cut]
    return head + items[cut:]


@way
def cut_at_the_back(talk: Talk, items: list[Item]) -> list[Item]:
    return items[: talk.random.randint(1, max(1, len(items)))]


@way
def no_user(talk: Talk, items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind != "user"]


@way
def only_instructions(talk: Talk, items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind == "system"] or [Item("system", talk.text("Greet the user."))]


@way
def ends_with_the_assistant(talk: Talk, items: list[Item]) -> list[Item]:
    return [*items, Item("say", talk.text("The answer is") + talk.random.choice(("", " ", "\n")))]


@way
def ends_with_an_instruction(talk: Talk, items: list[Item]) -> list[Item]:
    return [*items, Item(talk.random.choice(("system", "developer")), talk.text("Stay brief."))]


@way
def failed_results(talk: Talk, items: list[Item]) -> list[Item]:
    return [
        item.copy(is_error=True) if item.kind == "result" and talk.random.random() < 0.5 else item for item in items
    ]


@way
def pictures(talk: Talk, items: list[Item]) -> list[Item]:
    return [
        item.copy(has_image=True) if item.kind in ("result", "user") and talk.random.random() < 0.5 else item
        for item in items
    ]


@way
def another_kind_of_result(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "result")
    if place is None:
        return items
    form = talk.random.choice(("function", "custom"))
    return [*items[:place], items[place].copy(form=form), *items[place + 1 :]]


@way
def loose_thoughts(talk: Talk, items: list[Item]) -> list[Item]:
    """Reasoning without a following text or call."""
    for _ in range(talk.random.randint(1, 3)):
        spots = [place for place, item in enumerate(items) if not item.is_answer]
        items = _with(items, talk.random.choice((*spots, len(items))), talk.thought())
    return items


@way
def thought_lost(talk: Talk, items: list[Item]) -> list[Item]:
    """All reasoning of one assistant turn."""
    place = _any(talk, items, "think")
    if place is None:
        return items
    start = end = place
    while start > 0 and items[start - 1].is_answer:
        start -= 1
    while end < len(items) and items[end].is_answer:
        end += 1
    return [*items[:start], *(item for item in items[start:end] if item.kind != "think"), *items[end:]]


@way
def all_thoughts_lost(talk: Talk, items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind != "think"]


@way
def thought_twice(talk: Talk, items: list[Item]) -> list[Item]:
    place = _any(talk, items, "think")
    return items if place is None else _with(items, talk.random.choice((place, _spot(talk, items))), items[place])


@way
def proof_lost(talk: Talk, items: list[Item]) -> list[Item]:
    """The signatures of all reasoning, or of one piece."""
    share = talk.random.choice((0.3, 1.0))
    return [
        item.copy(proof=talk.random.choice(("none", "empty")))
        if item.kind == "think" and talk.random.random() < share
        else item
        for item in items
    ]


@way
def summary_instead(talk: Talk, items: list[Item]) -> list[Item]:
    cut = talk.random.randint(0, len(items))
    form = talk.random.choice(("user", "own"))
    return [Item("summary", talk.text("So far:", "Summary:"), form=form), *items[cut:]]


@way
def two_conversations(talk: Talk, items: list[Item]) -> list[Item]:
    other = Talk(talk.random, talk.dialect, talk.thinking)
    other.number = talk.number if talk.random.random() < 0.3 else 0
    more = other.conversation()
    talk.number = max(talk.number, other.number)
    return items + more


@way
def replayed(talk: Talk, items: list[Item]) -> list[Item]:
    """A retrying client wrote a part of the history twice."""
    start, end = sorted((_spot(talk, items), _spot(talk, items)))
    return [*items[:end], *items[start:]]


@way
def shuffled(talk: Talk, items: list[Item]) -> list[Item]:
    """Items that are not the assistant's, within a small window."""
    start = talk.random.randint(0, len(items))
    places = [place for place in range(start, min(start + 8, len(items))) if not items[place].is_answer]
    moved = talk.random.sample(places, len(places))
    written = list(items)
    for place, other in zip(places, moved, strict=True):
        written[place] = items[other]
    return written


@way
def half_of_an_own_tool(talk: Talk, items: list[Item]) -> list[Item]:
    use, outcome = talk.own_tool()
    half = talk.random.choice(([use], [outcome], [use, use, outcome], [outcome, use], [use, outcome, outcome]))
    spot = _any(talk, items, "say", "call")
    return _with(items, len(items) if spot is None else spot, *half)


@way
def approvals(talk: Talk, items: list[Item]) -> list[Item]:
    talk.number += 1
    asked, given = Item("approval", id=f"mcpr_{talk.number}"), Item("permit", id=f"mcpr_{talk.number}")
    return _with(items, _spot(talk, items), *talk.random.choice(([asked], [given], [asked, given])))
