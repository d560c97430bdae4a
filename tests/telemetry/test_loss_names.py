"""Every loss that the code reports has a meaning, in the table and in docs/losses.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from toolwire.calls.ledger.rules import Kind
from toolwire.telemetry.loss_names import ADAPTED, LOST, features, is_adapted
from toolwire.types import Loss

ROOT = Path(__file__).resolve().parents[2]
NAMES = ADAPTED | LOST
ANY = "*"
# Reported under a name that a variable holds: the kind of a place (dialects/shared/requests.py), tables of back ends.
COMPUTED = {"request.*", "message.*", "call.*", "result.*", "tool.*", "thinking.*", "output.strict"}


def reported() -> Iterator[tuple[str, str]]:
    """The first argument of every Loss(...) and report(...): (place, name), with * for what is computed."""
    for path in sorted((ROOT / "src" / "toolwire").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_report = function == "report" and path.parts[-2] == "calls"
            if function == "Loss" or is_report:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", written(node.args[0])


def written(name: ast.expr) -> str:
    match name:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return f"{text}{ANY}"
    return ANY


def meaning_of(name: str) -> str | None:
    return NAMES.get(name) or LOST.get(f"{name.rpartition('.')[0]}.*")


FOUND = [(place, name) for place, name in reported() if name != ANY]


@pytest.mark.parametrize(("place", "name"), FOUND, ids=[f"{place} {name}" for place, name in FOUND])
def test_every_reported_loss_has_a_meaning(place: str, name: str) -> None:
    if name == "history.*":
        assert all(f"history.{kind}" in NAMES for kind in get_args(Kind))
    else:
        assert meaning_of(name), f"{place} reports {name}: add it to telemetry/loss_names.py and docs/losses.md"


def test_no_name_is_listed_that_nothing_reports() -> None:
    names = {name for _, name in FOUND} | {f"history.{kind}" for kind in get_args(Kind)} | COMPUTED
    prefixes = tuple(name.removesuffix(ANY) for name in names if name.endswith(ANY))
    assert len(FOUND) > 100
    assert not [name for name in NAMES if name not in names and not name.startswith(prefixes)]
    assert not [name for name in COMPUTED if name not in NAMES]


def test_the_page_lists_every_name_with_its_meaning() -> None:
    page = (ROOT / "docs" / "losses.md").read_text(encoding="utf-8")
    adapted, lost = page.partition("\n## Adapted\n")[2].split("\n## Lost\n")
    for section, names in ((adapted, ADAPTED), (lost, LOST)):
        assert dict(re.findall(r"^\| `([\w.*]+)` \| (.+) \|$", section, re.MULTILINE)) == names
        assert list(names) == sorted(names)


def test_a_loss_is_adapted_or_lost() -> None:
    assert not ADAPTED.keys() & LOST.keys()
    assert is_adapted("role.system")
    assert not is_adapted("sampling.top_k")
    assert not is_adapted("logit_bias")  # a member that a profile refuses
    losses = [Loss(name, "", "") for name in ("max_tokens", "schema", "schema", "part.x", "history.order")]
    assert features(losses, adapted=True) == ["history.order", "schema"]
    assert features(losses, adapted=False) == ["max_tokens", "part.x"]
