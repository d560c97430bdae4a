"""Write docs/hazards.md from docs/hazards.toml and from the names of the tests: a test that covers a hazard carries its number.

Run from anywhere: `python scripts/hazard_table.py [ROOT]`. It exits 1 if a hazard has neither a test nor a reason, or both.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

DATA = "docs/hazards.toml"
DOCUMENT = "docs/hazards.md"
_NUMBER = re.compile(r"(?<![A-Za-z0-9])H\d{3}(?![A-Za-z0-9])")
_HEAD = """# Hazards

Known failures of tool calling. Each has a number, and the tests that cover it have the number in their names. `python scripts/hazard_table.py` generates
this page from `docs/hazards.toml` and the tests. A test fails if the page is out of date.
"""

Tests: TypeAlias = dict[str, list[str]]  # number -> file::name, in order


class Hazard(NamedTuple):
    """answer says what toolwire does; reason, where that is empty, why no test shows it."""

    number: str
    wrong: str
    answer: str
    reason: str


def hazards_in(text: str) -> dict[str, list[Hazard]]:
    """By area, in the order of the file."""
    return {
        area: [
            Hazard(number, row["wrong"], row.get("answer", ""), row.get("reason", "")) for number, row in rows.items()
        ]
        for area, rows in tomllib.loads(text).items()
    }


def numbered_tests(root: Path) -> Tests:
    """Which tests carry which number in their names; several may stand in one name."""
    found: Tests = {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        place = path.relative_to(root).as_posix()
        for name in _test_names(path):
            for number in _numbers(name):
                found.setdefault(number, []).append(f"{place}::{name}")
    return found


def faults(areas: dict[str, list[Hazard]], tests: Tests) -> Iterator[str]:
    known = [hazard for rows in areas.values() for hazard in rows]
    numbers = [hazard.number for hazard in known]
    for hazard in known:
        if bool(hazard.answer) == bool(hazard.reason):
            yield f"{hazard.number}: expected an answer or a reason in {DATA}, and not both."
        elif hazard.reason and hazard.number in tests:
            yield f"{hazard.number}: has a reason in {DATA} and a test, {tests[hazard.number][0]}; take the reason away."
        elif hazard.answer and hazard.number not in tests:
            yield f"{hazard.number}: no test carries this number; write one, or give a reason in {DATA}."
    yield from (f"{number}: stands in {DATA} twice." for number in sorted({n for n in numbers if numbers.count(n) > 1}))
    yield from (
        f"{number}: {tests[number][0]} carries it, {DATA} does not know it." for number in tests.keys() - numbers
    )


def document(areas: dict[str, list[Hazard]], tests: Tests) -> str:
    known = [hazard for rows in areas.values() for hazard in rows]
    tested = sum(hazard.number in tests for hazard in known)
    parts = [_HEAD, f"{len(known)} hazards: {tested} with tests, {len(known) - tested} with a reason why not.\n"]
    for area, rows in areas.items():
        parts.append(f"## {area}\n")
        parts.append("| | what goes wrong | what toolwire does | tests |\n|---|---|---|---|")
        parts[-1] += "".join(f"\n{_row(hazard, tests.get(hazard.number, []))}" for hazard in rows) + "\n"
    return "\n".join(parts)


def site_text(areas: dict[str, list[Hazard]], tests: Tests) -> str:
    """The same for the documentation site: a list, with the files of the tests instead of their names."""
    parts = [
        "# Hazards\n",
        "Known failures of tool calling, and what toolwire does. The tests have these numbers in their names.\n",
    ]
    for area, rows in areas.items():
        parts.append(f"## {area}\n")
        for hazard in rows:
            files = sorted({test.partition("::")[0] for test in tests.get(hazard.number, [])})
            parts.append(f"**{hazard.number}.** {hazard.wrong}\n")
            parts.append(f"> {hazard.answer or f'No test: {hazard.reason}'}\n")
            if files:
                parts.append(f"> Tests: {', '.join(f'`{file}`' for file in files)}\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    areas = hazards_in((root / DATA).read_text(encoding="utf-8"))
    tests = numbered_tests(root)
    found = sorted(faults(areas, tests))
    print("\n".join(found) if found else f"{DOCUMENT}: every hazard has a test or a reason.")
    (root / DOCUMENT).write_text(document(areas, tests), encoding="utf-8")
    return 1 if found else 0


def _test_names(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if "_H" not in text:  # parsing all files takes a second
        return
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def _numbers(name: str) -> list[str]:
    return _NUMBER.findall(name.replace("_", " "))


def _row(hazard: Hazard, tests: list[str]) -> str:
    shown = "<br>".join(f"`{test}`" for test in tests)
    return f"| {hazard.number} | {hazard.wrong} | {hazard.answer or f'No test: {hazard.reason}'} | {shown} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
