"""The result as a picture: one group of bars for each scenario, CPU time on a logarithmic axis, as SVG for light and dark pages."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from report import Results, cell, title_of

WIDTH, LEFT, RIGHT, TOP = 860, 290, 70, 56
BAR, GAP, GROUP_GAP = 13, 3, 12


class Theme(NamedTuple):
    text: str
    quiet: str
    grid: str
    bars: dict[str, str]


THEMES = {
    "light": Theme(
        "#1f2328",
        "#59636e",
        "#d1d9e0",
        {"nginx": "#8c959f", "toolwire": "#0969da", "tensorzero": "#bf8700", "litellm": "#cf222e"},
    ),
    "dark": Theme(
        "#f0f6fc",
        "#9198a1",
        "#3d444d",
        {"nginx": "#656c76", "toolwire": "#4493f8", "tensorzero": "#d29922", "litellm": "#f85149"},
    ),
}
OTHER = "#8250df"


def write_plots(results: Results, folder: Path) -> None:
    for name, theme in THEMES.items():
        (folder / f"bench-{name}.svg").write_text(draw(results, theme), encoding="utf-8")


def draw(results: Results, theme: Theme) -> str:
    names = [target.name for target in results.targets]
    groups = [(scenario, _bars(results, scenario.name, names)) for scenario in results.scenarios]
    values = [value for _, bars in groups for _, value in bars]
    if not values:
        raise SystemExit("bench: nothing was measured, so there is nothing to draw.")
    least = 10.0 ** math.floor(math.log10(min(values)))
    most = 10.0 ** math.ceil(math.log10(max(values)))
    height = TOP + 30 + sum(GROUP_GAP + len(bars) * (BAR + GAP) for _, bars in groups)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        "<title>CPU time of gateways per request or chunk, logarithmic</title>",
        *_legend(names, theme),
        *_grid(least, most, height, theme),
    ]
    top = TOP
    for scenario, bars in groups:
        middle = top + len(bars) * (BAR + GAP) / 2 + 3
        label = f"{scenario.title}, µs per {scenario.unit}"
        lines.append(
            f'<text x="{LEFT - 10}" y="{middle:.0f}" text-anchor="end" fill="{theme.text}">{escape(label)}</text>'
        )
        for name, value in bars:
            width = max(1.0, _place(value, least, most) - LEFT)
            lines.append(
                f'<rect x="{LEFT}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2" fill="{_color(name, theme)}"/>'
                f'<text x="{LEFT + width + 5:.1f}" y="{top + BAR - 2}" font-size="11" fill="{theme.quiet}">{cell(value)}</text>'
            )
            top += BAR + GAP
        top += GROUP_GAP
    return "\n".join([*lines, "</svg>", ""])


def _bars(results: Results, scenario: str, names: list[str]) -> list[tuple[str, float]]:
    found = ((name, results.value(name, scenario, lambda sample: sample.cpu)) for name in names)
    return [(name, value) for name, value in found if value]


def _place(value: float, least: float, most: float) -> float:
    share = math.log10(value / least) / math.log10(most / least)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _grid(least: float, most: float, height: int, theme: Theme) -> list[str]:
    lines, value = list[str](), least
    while value <= most * 1.01:
        x, label = f"{_place(value, least, most):.1f}", f"{value:,.0f}" if value >= 1 else f"{value:g}"
        lines.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{height - 24}" stroke="{theme.grid}"/>')
        lines.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle" fill="{theme.quiet}">{label} µs</text>')
        value *= 10
    return lines


def _legend(names: list[str], theme: Theme) -> list[str]:
    lines, x = [f'<text x="10" y="24" font-size="14" font-weight="600" fill="{theme.text}">CPU time</text>'], LEFT
    for name in names:
        lines.append(f'<rect x="{x}" y="13" width="12" height="12" rx="2" fill="{_color(name, theme)}"/>')
        lines.append(f'<text x="{x + 18}" y="24" fill="{theme.text}">{escape(title_of(name))}</text>')
        x += 40 + 8 * len(title_of(name))
    return lines


def _color(name: str, theme: Theme) -> str:
    return theme.bars.get(name, OTHER)
