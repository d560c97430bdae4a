"""A terminal's screen as an SVG picture, for the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.style import Style
from rich.text import Text

_FOREGROUND, _BACKGROUND, _DIM = "#d7dae0", "#1b1e24", "#7f8794"
_COLOURS = ("#5c6370", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", _FOREGROUND)  # by number
_CONSOLE = Console(force_terminal=True, color_system="standard")
_WIDTH, _HEIGHT, _MARGIN = 8.4, 18, 14  # of a character, of a line, around the screen


def styled_lines(screen: str) -> list[Text]:
    """screen: with escape sequences, which hold until another one, also on the next lines."""
    decoder = AnsiDecoder()
    return [decoder.decode_line(line) for line in screen.splitlines()]


def svg_of(lines: Sequence[Text], columns: int, title: str) -> str:
    """Nothing is loaded from elsewhere, and there are no scripts."""
    width, height = round(columns * _WIDTH) + 2 * _MARGIN, len(lines) * _HEIGHT + 2 * _MARGIN
    rows = [
        f'<text x="{_MARGIN}" y="{_MARGIN + (number + 1) * _HEIGHT - 5}" xml:space="preserve">{_spans(line)}</text>'
        for number, line in enumerate(lines)
        if line.plain.strip()
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}"/>',
            f'<g font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="14" fill="{_FOREGROUND}">',
            *rows,
            "</g>",
            "</svg>\n",
        ]
    )


def _spans(text: Text) -> str:
    text.rstrip()
    found: list[str] = []
    column = 0
    while column < len(text.plain):
        style = text.get_style_at_offset(_CONSOLE, column)
        end = column + 1
        while end < len(text.plain) and text.get_style_at_offset(_CONSOLE, end) == style:
            end += 1
        found.append(_span(text.plain[column:end], style))
        column = end
    return "".join(found)


def _span(text: str, style: Style) -> str:
    number = style.color.number if style.color is not None else None
    members = {
        "fill": _DIM if style.dim else "" if number is None else _COLOURS[number % 8],
        "font-weight": "bold" if style.bold else "",
        "font-style": "italic" if style.italic else "",
    }
    attributes = "".join(f' {key}="{value}"' for key, value in members.items() if value)
    return f"<tspan{attributes}>{escape(text, quote=False)}</tspan>" if attributes else escape(text, quote=False)
