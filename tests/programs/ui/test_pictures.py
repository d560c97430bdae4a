"""The pictures of docs/inspector.md, of a real gateway and a real browser. `TOOLWIRE_PICTURES=1` writes them to docs/images."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.installed import ROOT
from tests.programs.ui.chromium import Chromium, Page
from tests.programs.ui.stage import (
    CHAT,
    Stage,
    call_frames,
    end_frames,
    play,
    prepare_cache_miss,
    prepare_cut_stream,
    prepare_repaired_argument,
    question,
    staged,
    text_frames,
)
from toolwire.memory.store import Entry, Item
from toolwire.memory.store.base import CONVERSATION
from toolwire.memory.store.sqlite import SqliteStore
from toolwire.server.stats_writer import OWNER, day_name
from toolwire.telemetry.hourly import HOUR, Counts, HourLine

pytestmark = pytest.mark.slow
_TOOL = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}
LIMIT = 100_000  # bytes of a picture
TARGET = ROOT / "docs" / "images"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A gateway with a day of counts and an afternoon of flows."""
    folder = tmp_path_factory.mktemp("gallery")
    asyncio.run(_count_a_day(folder / "store.db"))
    with staged(folder, store=f'kind = "sqlite"\npath = "{folder / "store.db"}"') as stage:
        for name, text in (
            ("qwen3-coder", "Which files changed last week?"),
            ("gpt-oss-20b", "Summarize the open issues."),
        ):
            call = play(
                *text_frames("I will look."), *call_frames('{"city": "Bern"}'), *end_frames("tool_calls", cached=900)
            )
            stage.upstream.on(name, call)
            stage.ask(CHAT, question(name, text))
            stage.ask(
                "/v1/messages",
                {
                    "model": f"local/{name}",
                    "max_tokens": 99,
                    "stream": True,
                    "top_k": 40,
                    "tools": [_TOOL],
                    "messages": [{"role": "user", "content": text}],
                },
            )
        yield stage


def test_a_repaired_call(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_repaired_argument(gallery, "devstral", 0.02)
    page = browser.page(f"{gallery.page}#/flows/{flow}", 1280, 720)
    page.has(".report.repair .side.ins")
    _take(page, "inspector-summary", tmp_path)


def test_both_wires_of_a_repaired_call_in_the_dark(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_repaired_argument(gallery, "devstral", 0.02)
    page = browser.page(f"{gallery.page}#/flows/{flow}/wires", 1440, 760, dark=True)
    page.has(".wire.upstream .card")
    _take(page, "inspector-wires", tmp_path)


def test_a_cut_stream(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_cut_stream(gallery, "mistral-small", 0.08)
    page = browser.page(f"{gallery.page}#/flows/{flow}/stream", 1280, 720)
    page.has(".frames .frame")
    _take(page, "inspector-stream", tmp_path)


def test_a_cache_miss(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_cache_miss(gallery, "qwen3-235b", 0.02)
    page = browser.page(f"{gallery.page}#/flows/{flow}/changes", 1280, 720)
    page.has(".diff .plus")
    _take(page, "inspector-changes", tmp_path)


def test_the_charts(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    page = browser.page(f"{gallery.page}#/charts", 1280, 760)
    page.has(".charts caption")
    _take(page, "inspector-charts", tmp_path)


def test_the_playground(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    call = play(*text_frames("Let me look that up."), *call_frames('{"city": "Bern"}'), *end_frames("tool_calls"))
    for name in ("qwen3-coder", "gpt-oss-20b"):
        gallery.upstream.on(
            name, call, play(*text_frames("It is mild in Bern, ", "and it will stay dry."), *end_frames())
        )
    page = browser.page(f"{gallery.page}#/playground", 1440, 800)
    page.has(".model-chip")
    page.click(".model-chip button")
    for name in ("local/qwen3-coder", "local/gpt-oss-20b"):
        page.click("#model")
        page.write(name)
        page.press("Enter")
    page.value(
        "(() => { const one = document.querySelector('[aria-label^=\"Add an example\"]'); one.value = 'get_weather'; one.dispatchEvent(new Event('change')); })()"
    )
    page.click(".message-editor textarea")
    page.write("Do I need an umbrella in Bern today?")
    page.press("Enter", control=True)
    page.until(
        "[...document.querySelectorAll('.column')].filter((one) => one.textContent.includes('it will stay dry')).length === 2"
    )
    _take(page, "inspector-playground", tmp_path)


def test_a_phone(gallery: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_cut_stream(gallery, "mistral-small", 0.08)
    page = browser.page(f"{gallery.page}#/flows/{flow}", 390, 720, dark=True)
    page.has(".finding.bad")
    _take(page, "inspector-phone", tmp_path)


def _take(page: Page, name: str, folder: Path) -> None:
    page.value("document.activeElement.blur()")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    picture = (TARGET if os.environ.get("TOOLWIRE_PICTURES") else folder) / f"{name}.webp"
    page.shot(picture)
    assert 5_000 < picture.stat().st_size < LIMIT
    assert page.faults() == []
    page.close()


async def _count_a_day(path: Path) -> None:
    """Counts of the last hours, as a gateway writes them."""
    store = SqliteStore(path, max_bytes=1 << 24, max_age=1e9)
    now = int(time.time()) // HOUR
    models = (("qwen3-coder", 40, 0.81), ("gpt-oss-20b", 25, 0.9), ("devstral", 12, 0.74))
    for hour in range(now - 24, now):
        load = 4 + (hour * 7) % 9 + (10 if 8 <= hour % 24 <= 18 else 0)
        for place, (model, weight, share) in enumerate(models):
            requests = load * weight // 20
            calls = requests * 2
            counts = Counts(
                requests=requests,
                errors=requests // 30,
                calls=calls,
                accepted=int(calls * share),
                repaired=int(calls * (0.985 - share)),
                tokens_in=requests * 5200,
                tokens_out=requests * 240,
                seconds=requests * (2.1 + place + (hour * 5) % 4 / 3),
            )
            line = HourLine(hour=hour, backend="local", model=model, counts=counts)
            day = day_name(hour // 24)
            item = Item(f"{hour} picture {model}", line.encode())
            if not await store.append(OWNER, day, [item]):
                await store.put(Entry(owner=OWNER, id=day, kind=CONVERSATION, created=time.time()))
                await store.append(OWNER, day, [item])
    await store.close()
