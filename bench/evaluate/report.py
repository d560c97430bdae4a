"""The results as a table, and as JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from .recorder import Cost
from .settings import Setting
from .truth import Verdict

Json = Any
_HEAD = (
    "choice",
    "tools",
    "grammar",
    "guard",
    "call",
    "parses",
    "validates",
    "equal",
    "rightly no call",
    "requests",
    "tokens",
    "requests per point",
    "tokens per point",
)


class Row(Struct, frozen=True):
    """calls: verdicts of the questions that need a call; others: of those that need none. failed: requests that ended in an error."""

    setting: Setting
    calls: list[Verdict]
    others: list[Verdict]
    cost: Cost
    failed: int

    @property
    def equal(self) -> float:
        return _share(self.calls, "is_equal")

    def baseline(self, rows: list[Row]) -> Row:
        return next(row for row in rows if row.setting == self.setting.baseline)


def to_json(rows: list[Row]) -> list[Json]:
    return [
        {
            "tool_choice": row.setting.choice,
            "tools": row.setting.tools,
            "grammar": row.setting.grammar,
            "guard": row.setting.guard,
            "questions": len(row.calls),
            **{name: sum(getattr(verdict, name) for verdict in row.calls) for name in Verdict.__struct_fields__},
            "questions_without_call": len(row.others),
            "rightly_no_call": sum(verdict.is_equal for verdict in row.others),
            "failed": row.failed,
            "requests": row.cost.requests,
            "prompt_tokens": row.cost.prompt_tokens,
            "completion_tokens": row.cost.completion_tokens,
            "points_gained": round(row.equal - row.baseline(rows).equal, 1),
        }
        for row in rows
    ]


def to_table(rows: list[Row]) -> str:
    lines = [_HEAD, tuple("---" for _ in _HEAD), *(_cells(row, row.baseline(rows)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Row, before: Row) -> tuple[str, ...]:
    shares = [f"{_share(row.calls, name):.0f} %" for name in Verdict.__struct_fields__]
    asked = len(row.calls) + len(row.others)
    setting, cost = row.setting, row.cost
    return (
        setting.choice,
        setting.tools,
        setting.grammar,
        setting.guard,
        *shares,
        f"{_share(row.others, 'is_equal'):.0f} %" if row.others else "-",
        f"{cost.requests / asked:.2f}",
        f"{cost.tokens / asked:.0f}",
        _per_point(cost.requests - before.cost.requests, row.equal - before.equal, asked),
        _per_point(cost.tokens - before.cost.tokens, row.equal - before.equal, asked),
    )


def _share(verdicts: list[Verdict], name: str) -> float:
    return 100 * sum(getattr(verdict, name) for verdict in verdicts) / len(verdicts) if verdicts else 0.0


def _per_point(more: int, points: float, asked: int) -> str:
    """Additional cost of one question for each point of right answers; nothing where none was gained."""
    return f"{more / asked / points:+.3f}" if points > 0 else "-"
