"""What it costs to look for written calls in a stream of text: `python bench/spoken.py [--chunk LETTERS] [--rounds N]`.

Four ways for the same chunks, measured in turns: appending them to a list; passing them through a Turn as events, which is what happens to
every answer anyway; asking a Sentinel whether they pass; and feeding them to it. The figure is the least of all rounds, since noise only adds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from toolwire.calls.turn import Turn
from toolwire.calls.written.scanner import CallScanner
from toolwire.events import Event, PartDelta, PartStarted, Started
from toolwire.types import Request, Text, Tool

PROSE = "The quick brown fox jumps over the lazy dog, again and again; then it rests.\nA new line begins here, 1 < 2.\n"
CODE = "Use `it` so:\n```python\nif a < b and c[0] > {1: 2}[x]:\n    print('<b>')\n```\nThat is **all**, see [here](there).\n"
CALL = (
    '<tool_call>{"name": "search", "arguments": {"query": "a long text, with words in it", "limit": 10}}</tool_call>\n'
)
TEXTS = {"prose": PROSE * 200, "markdown": CODE * 200, "calls": CALL * 200}

Way = Callable[[list[str]], object]


class Tools:
    is_instructed = True

    def tool(self, name: str) -> Tool | None:
        return Tool(name=name)

    def fits(self, name: str, raw: str) -> bool:
        return True


def append(chunks: list[str]) -> list[str]:
    kept: list[str] = []
    for chunk in chunks:
        kept.append(chunk)
    return kept


def through_turn(chunks: list[str]) -> Turn:
    turn = Turn(Request(model="m", messages=()), lambda prefix: prefix)
    turn.send([Started(id="a", model="m"), PartStarted(index=0, part=Text(text=""))])
    for chunk in chunks:
        events: list[Event] = [PartDelta(0, chunk)]
        turn.send(events)
    return turn


def ask(chunks: list[str]) -> CallScanner:
    sentinel = CallScanner(Tools())
    for chunk in chunks:
        if not sentinel.passes(chunk):
            sentinel.feed(chunk)
    return sentinel


def feed(chunks: list[str]) -> CallScanner:
    sentinel = CallScanner(Tools())
    for chunk in chunks:
        sentinel.feed(chunk)
    return sentinel


WAYS: dict[str, Way] = {"append": append, "turn": through_turn, "passes": ask, "feed": feed}


def measure(chunks: list[str], rounds: int) -> dict[str, float]:
    """Nanoseconds for one chunk."""
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(rounds):
        for name, way in WAYS.items():
            start = time.process_time_ns()
            way(chunks)
            best[name] = min(best[name], (time.process_time_ns() - start) / len(chunks))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunk", type=int, default=12, help="letters in a chunk")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    print(f"ns for a chunk of {options.chunk} letters")
    print(f"{'':10}" + "".join(f"{name:>9}" for name in WAYS) + "   feed/turn")
    for name, text in TEXTS.items():
        chunks = [text[start : start + options.chunk] for start in range(0, len(text), options.chunk)]
        best = measure(chunks, options.rounds)
        print(f"{name:10}" + "".join(f"{best[way]:9.0f}" for way in WAYS) + f"{best['feed'] / best['turn']:11.2f}")


if __name__ == "__main__":
    main()
