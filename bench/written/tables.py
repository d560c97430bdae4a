"""The tables, in Markdown, and whether they are as they must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from .cost import PIECE, WAYS
from .damage import Damage
from .measure import Tally
from .rounds import SETTINGS

Say = Callable[[str], None]
Tallies = Sequence[Tally]
OUTCOMES = ("equal", "broken", "lost", "wrong")


def share(count: int, total: int) -> str:
    """In percent; what is not all, or not nothing, never looks like it."""
    if not total or count in (0, total):
        return "-" if not total else "100" if count else "0"
    return f"{min(99.9, max(0.1, 100 * count / total)):.1f}"


def _row(say: Say, *cells: object) -> None:
    say("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")


def _head(say: Say, *cells: str) -> None:
    _row(say, *cells)
    say("|---" + "|---:" * (len(cells) - 1) + "|")


def show_forms(told: Tallies, untold: Tallies, say: Say) -> bool:
    """Right calls: nothing may be wrong, and of the forms that are promised 99 of 100 must come back."""
    _head(
        say,
        "form",
        "answers",
        "told: equal %",
        "lost",
        "wrong",
        "untold: equal %",
        "lost",
        "wrong",
        "uneven",
        "other text",
        "verbatim %",
    )
    is_good = True
    for one, other in zip(told, untold, strict=True):
        name = one.name if one.hope else f"({one.name})"
        _row(say, name, one.total, *_form(one), *_form(other), *_rest(one, other), _verbatim(other))
        is_good &= not one.counts["wrong"] + other.counts["wrong"] + one.counts["uneven"] + other.counts["uneven"]
        is_good &= not one.hope or min(one.counts["equal"], other.counts["equal"]) >= 0.99 * one.total
    return is_good


def _form(tally: Tally) -> list[object]:
    counts = tally.counts
    return [share(counts["equal"], tally.total), counts["lost"] + counts["broken"], counts["wrong"]]


def _rest(one: Tally, other: Tally) -> list[int]:
    both = one.counts + other.counts
    return [both["uneven"], both["text"]]


def _verbatim(tally: Tally) -> str:
    total = sum(tally.counts[f"verbatim_{outcome}"] for outcome in OUTCOMES)
    return share(tally.counts["verbatim_equal"], total)


def show_damages(damages: Sequence[Damage], told: Tallies, untold: Tallies, say: Say) -> bool:
    """One line for each damage, and sums; none may become another call."""
    _head(
        say,
        "damage",
        "hope",
        "answers",
        *(f"{mode}: {word} %" for mode in ("told", "untold") for word in ("equal", "broken", "text")),
        "wrong",
    )
    for damage, one, other in zip(damages, told, untold, strict=True):
        _damaged(say, damage.name, damage.hope, one, other)
    for hope, group in _groups(damages):
        chosen = [index for index, damage in enumerate(damages) if damage.hope == hope and damage.group in group]
        names = f"**all {hope}{': ' + group[0] if len(group) == 1 else ''}**"
        _damaged(say, names, "", _sum(told, chosen), _sum(untold, chosen))
    return not sum(tally.counts["wrong"] + tally.counts["uneven"] for tally in (*told, *untold))


def _groups(damages: Iterable[Damage]) -> list[tuple[str, list[str]]]:
    groups = list(dict.fromkeys(damage.group for damage in damages))
    return [("clear", [group]) for group in groups] + [("clear", groups), ("doubtful", groups)]


def _sum(tallies: Tallies, chosen: Sequence[int]) -> Tally:
    total = Tally("")
    for index in chosen:
        total.add(tallies[index])
    return total


def _damaged(say: Say, name: str, hope: str, one: Tally, other: Tally) -> None:
    cells = [share(tally.counts[word], tally.total) for tally in (one, other) for word in ("equal", "broken", "lost")]
    _row(say, name.replace("_", " "), hope, one.total, *cells, one.counts["wrong"] + other.counts["wrong"])


def show_cuts(known: Tallies, unknown: Tallies, untold: Tallies, say: Say) -> bool:
    """Answers that end anywhere, where the server says that a limit was reached, and where it does not."""
    words = ("equal or some %", "broken %", "wrong")
    modes = ("told, a limit", "told, no word of it", "untold, a limit")
    _head(say, "cut anywhere", "answers", *(f"{mode}: {word}" for mode in modes for word in words))
    for tallies in zip(known, unknown, untold, strict=True):
        _row(say, tallies[0].name, tallies[0].total, *(cell for tally in tallies for cell in _cut(tally)))
    return not sum(tally.counts["wrong"] for tally in (*known, *unknown, *untold))


def _cut(tally: Tally) -> list[object]:
    counts = tally.counts
    return [share(counts["equal"] + counts["lost"], tally.total), share(counts["broken"], tally.total), counts["wrong"]]


def show_prose(told: Tallies, untold: Tallies, say: Say) -> bool:
    """Text that calls nothing; only where nobody can tell may a call be made of it."""
    _head(
        say,
        "prose",
        "answers",
        "false calls, told",
        "broken, told",
        "false calls, untold",
        "broken, untold",
        "uneven",
        "other text",
        "verbatim: false calls",
    )
    is_good = True
    for one, other in zip(told, untold, strict=True):
        counts = other.counts
        cells = [number for tally in (one, other) for number in (tally.counts["wrong"], tally.counts["broken"])]
        streamed = sum(counts[f"verbatim_{outcome}"] for outcome in OUTCOMES)
        _row(say, one.name, one.total, *cells, *_rest(one, other), f"{counts['verbatim_wrong']} of {streamed}")
        if one.name != "unclear":
            is_good &= not sum(cells) + sum(_rest(one, other)) + counts["verbatim_wrong"]
    return is_good


def show_rounds(results: dict[tuple[str, float, str], Counter[str]], say: Say) -> None:
    _head(
        say,
        "mistakes",
        "of 100 answers",
        *(f"{setting.name}: right % (wrong)" for setting in SETTINGS),
        "answers asked for, retry",
    )
    for kind, chance in dict.fromkeys((kind, chance) for kind, chance, _ in results):
        found = [results[kind, chance, setting.name] for setting in SETTINGS]
        totals = [counts["right"] + counts["wrong"] + counts["failed"] for counts in found]
        cells = [
            f"{share(counts['right'], total)} ({counts['wrong']})" for counts, total in zip(found, totals, strict=True)
        ]
        _row(say, kind, round(100 * chance), *cells, f"{found[2]['asked'] / totals[2]:.2f}")


def show_cost(results: dict[str, dict[str, float]], say: Say) -> None:
    _head(say, f"µs for {PIECE} letters", *WAYS, "told / translated", "untold / verbatim", "parser / translated")
    for name, found in results.items():
        ratios = [
            found["translated, told"] / found["translated"],
            found["verbatim, untold"] / found["verbatim"],
            found["parser alone, told"] / found["translated"],
        ]
        _row(say, name, *(f"{found[way]:.2f}" for way in WAYS), *(f"{ratio:.2f}" for ratio in ratios))
