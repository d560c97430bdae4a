"""The inspector in a real Chromium, beside a real gateway: what it shows, how fast, by keyboard alone, and with hostile text."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.programs.ui.chromium import Chromium, Page
from tests.programs.ui.histories import ASK, HISTORIES
from tests.programs.ui.stage import (
    CHAT,
    Stage,
    call_frames,
    end_frames,
    play,
    prepare_cache_miss,
    prepare_correction,
    prepare_cut_stream,
    prepare_repaired_argument,
    question,
    staged,
    text_frames,
    whole,
)
from tests.server.harness import HOLD, chunk, reply, stream_head

pytestmark = pytest.mark.slow

DIALECTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": (CHAT, {"messages": [{"role": "user", "content": ASK}]}),
    "responses": ("/v1/responses", {"input": ASK}),
    "messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": ASK}]}),
    "gemini": (
        "/v1beta/models/local/MODEL:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": ASK}]}]},
    ),
    "interactions": ("/v1beta/interactions", {"input": ASK}),
    "ollama": ("/api/chat", {"messages": [{"role": "user", "content": ASK}]}),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_flow_appears_at_once_and_grows_while_it_streams(stage: Stage, browser: Chromium, dialect: str) -> None:
    model = f"stream-{dialect}"
    stage.upstream.on(model, play(0.4, *text_frames("It ", "rains "), 2.0, *text_frames("in Oslo."), *end_frames()))
    path, body = DIALECTS[dialect]
    page = browser.page(stage.page)
    page.has("#live", "live")
    page.value(
        f"window.seen = 0; new MutationObserver(() => {{ if (!window.seen && document.querySelector('.rows').textContent.includes('{model}')) window.seen = Date.now(); }}).observe(document.body, {{subtree: true, childList: true, characterData: true}})"
    )
    started = time.time()
    with stage.open_request(path.replace("MODEL", model), {"model": f"local/{model}", "stream": True, **body}):
        page.has(".row[data-outcome=open]", model)
        assert page.value("window.seen") / 1000 - started < 1.0
        page.click(".row", model)
        page.press("2")
        page.has(".answer.message", "It rains", seconds=2.0)
        assert "running" in page.text(".flow-head")
        page.has(".answer.message", "It rains in Oslo.")
        page.has(".row[data-outcome=ok]", model)
    assert ASK in page.text(".conversation")
    assert page.faults() == []
    page.close()


def test_no_click_is_lost_while_the_page_changes(stage: Stage, browser: Chromium) -> None:
    """A new flow would move and redraw the row between the press of the button and its release."""
    stage.upstream.on("held", [stream_head(), *(chunk(frame) for frame in text_frames("It ")), HOLD])
    stage.upstream.on("other", whole("Fine."))
    page = browser.page(stage.page)
    page.has("#live", "live")
    page.value(
        "window.ended = 0; new EventSource('api/flows/live').addEventListener('flow', (event) => {"
        " if (JSON.parse(event.data).outcome === 'ok') requestAnimationFrame(() => requestAnimationFrame(() => { window.ended += 1; })); })"
    )
    with stage.open_request(CHAT, question("held")):
        page.has(".row[data-outcome=open]", "local/held")
        place = page.middle(".row .preview")
        page.mouse("mousePressed", place)
        while not page.value("window.ended"):
            stage.ask(CHAT, question("other", stream=False))
        page.mouse("mouseReleased", place)
        page.has(".flow-head", "local/held")
        page.has(".row", "local/other")
    page.close()


def test_a_cut_stream_is_explained(stage: Stage, browser: Chromium) -> None:
    flow = prepare_cut_stream(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}")
    page.has(".finding.bad", "Failed in the middle of a call: upstream_cut")
    page.has(".finding.bad", "in the middle of the call get_weather")
    page.has(".finding.bad", "look at its log")
    page.click(".finding.bad button")
    page.has(".rebuilt.upstream", '{"city": "Geneva", "da')
    page.press("2")
    page.has(".card.call", "its arguments are incomplete")
    page.close()


def test_a_repaired_call_shows_before_and_after(stage: Stage, browser: Chromium) -> None:
    flow = prepare_repaired_argument(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}")
    page.has(".finding.warn", "1 repair")
    page.has(".report.repair .side.del", '"days": "3",}')
    page.has(".report.repair .side.ins", '"days":3}')
    page.press("2")
    page.has(".answer .card.call", "valid after repair")
    page.has(".answer .repaired .side.del", '"days": "3",}')
    page.press("3")
    page.has(".wire.upstream .card", '"days": "3",}')
    page.has(".wire.client .card .number", "3")
    page.has(".wire.canonical .type", "part_started")
    page.close()


def test_a_corrected_call_shows_what_the_model_wrote_first(stage: Stage, browser: Chromium) -> None:
    flow = prepare_correction(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}")
    page.has(".finding.warn", "the model was asked again")
    page.has(".report.correction .side.del", '"town": 5')
    page.has(".report.correction .side.ins", '"city": "Bern"')
    assert "invalid" not in page.text(".findings") + page.text(".row")
    page.press("3")
    page.has(".wire.upstream h4", "Request 2 of 2")
    page.close()


def test_a_cache_miss_names_the_changed_part(stage: Stage, browser: Chromium) -> None:
    flow = prepare_cache_miss(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}")
    page.has(".finding.warn", "Prompt cache miss: the system prompt changed")
    page.has(".finding.warn .side.ins", "12:03:51")
    page.click(".chip", "Uncached")
    page.until("document.querySelectorAll('.row').length === 1")
    assert "Request 2 of 2 in this conversation" in page.text(".run")
    page.press("6")
    page.has(".before-after .side.del", "12:03:44")
    page.has(".before-after .side.ins", "12:03:51")
    page.has(".diff .plus", "12:03:51")
    page.press("2")
    page.click(".card.call .jump", "result")
    page.until("document.activeElement.matches('.card.result')")
    page.close()


@pytest.mark.parametrize("dialect", HISTORIES)
def test_a_history_of_each_dialect_is_a_conversation_with_links(stage: Stage, browser: Chromium, dialect: str) -> None:
    stage.upstream.on("history", whole("Sunny."))
    path, body = HISTORIES[dialect]
    assert stage.ask(path, {"model": "local/history", **body}).status == 200
    page = browser.page(f"{stage.page}#/flows/{stage.newest('history')['id']}/conversation")
    page.has(".card.call", "get_weather")
    page.has(".card.result", "21 degrees")
    roles = page.value("[...document.querySelectorAll('.message')].map((one) => one.dataset.role)")
    assert roles == ["user", "assistant", "tool", "assistant"]
    page.click(".jump", "result")
    page.until("document.activeElement.matches('.card.result')")
    page.click(".jump", "call")
    page.until("document.activeElement.matches('.card.call')")
    page.close()


def test_the_keyboard_alone_reaches_everything(stage: Stage, browser: Chromium, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        stage.upstream.on(name, whole(f"Answer of {name}"))
        stage.ask(CHAT, question(name, stream=False))
    page = browser.page(stage.page, downloads=tmp_path)
    page.has(".row", "third")
    page.press("j")
    page.until("document.querySelector('.row[aria-selected=true]').textContent.includes('third')")
    page.press("j")
    page.press("ArrowDown")
    page.until("document.querySelector('.flow-head')?.textContent.includes('local/second')")
    page.press("End")
    page.press("k")
    page.press("/")
    assert page.value("document.activeElement.id") == "search"
    page.write("first")
    page.until("document.querySelectorAll('.row').length === 1")
    page.press("Enter")
    page.until("document.querySelector('.flow-head')?.textContent.includes('local/first')")
    page.press("Enter")
    page.until("document.activeElement.matches('.detail .panel')")
    assert page.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("2")
    page.has(".answer.message", "Answer of first")
    page.press("c")
    page.has("dialog textarea")
    page.press("Escape")
    page.until("!document.querySelector('dialog')")
    page.press("?")
    page.has("dialog", "Keyboard shortcuts")
    page.press("Escape")
    page.press("t")
    page.until("document.documentElement.dataset.theme === 'dark'")
    page.press("e")
    _downloaded(tmp_path)
    page.press("r")
    page.until("document.querySelector('#raw')?.value.includes('local/first')")
    page.press("Escape")
    assert page.faults() == []
    page.close()


def test_hostile_text_and_large_arguments_stay_text(stage: Stage, browser: Chromium, tmp_path: Path) -> None:
    hostile = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    large = json.dumps({"city": "x" * 1_000_000, "note": hostile})
    stage.upstream.on(
        "hostile", play(*text_frames(hostile), *call_frames(large, hostile, size=100_000), *end_frames("tool_calls"))
    )
    stage.ask(CHAT, question("hostile", hostile))
    flow = stage.newest("hostile")["id"]
    page = browser.page(stage.page, downloads=tmp_path)
    page.has(".row", hostile)
    began = time.monotonic()
    page.click(".row", hostile)
    for key in "123456":
        page.press(key)
        page.until(
            f"document.querySelectorAll('.tabs [role=tab]')[{int(key) - 1}].getAttribute('aria-selected') === 'true'"
        )
    assert time.monotonic() - began < 10
    page.press("2")
    page.has(".answer .card.call", hostile)
    page.press("e")
    file = _downloaded(tmp_path)
    page.open(f"file://{file}")
    page.has(".answer", hostile)
    assert page.value("window.hacked ?? 0") == 0
    assert page.value("document.querySelectorAll('main script, main img').length") == 0
    assert flow in file.name
    page.close()


def test_an_exported_flow_opens_from_disk(stage: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_cache_miss(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}", downloads=tmp_path)
    page.has(".finding.warn", "Prompt cache miss")
    page.click(".actions button", "Export")
    file = _downloaded(tmp_path)
    page.close()
    offline = browser.page(f"file://{file}")
    offline.has(".exported", "Prompt cache miss: the system prompt changed")
    offline.has(".exported .diff .plus", "12:03:51")
    offline.has(".exported .wire.upstream", CHAT)
    assert offline.requested() == [f"file://{file}"]
    assert offline.faults() == []
    text = file.read_text(encoding="utf-8")
    assert "sk-of-the-back-end" not in text
    assert json.loads(re.search(r'<script type="application/json" id="flow">(.*?)</script>', text)[1])["id"] == flow  # type: ignore[index]
    offline.close()


def test_a_saved_cassette_is_opened_again(stage: Stage, browser: Chromium, tmp_path: Path) -> None:
    flow = prepare_cache_miss(stage)
    page = browser.page(stage.page, downloads=tmp_path)
    page.has(".rows .row")
    page.click("footer button", "Save as cassette")
    file = _downloaded(tmp_path, "jsonl")
    count = len(stage.flows())
    stage.clear()
    page.has("#count", "0 flows")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="#cassette-file")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
    page.has("#toast", f"{count} flow")
    page.value(f"location.hash = '#/flows/{flow}'")
    page.has(".finding.warn", "Prompt cache miss")
    assert page.faults() == []
    page.close()


def test_ten_thousand_flows_stay_usable(browser: Chromium, tmp_path: Path) -> None:
    with staged(tmp_path, 'log = "warning"') as stage:
        _send_many(stage, 10_000)
        page = browser.page(stage.page)
        page.until("document.querySelector('#count').textContent === '10,000 flows'", 60)
        assert page.value("document.querySelectorAll('.row').length") < 60
        assert (
            _seconds(
                page,
                "End",
                "document.querySelector('.row[aria-selected=true]')?.getAttribute('aria-posinset') === '10000'",
            )
            < 2
        )
        assert (
            _seconds(
                page,
                "Home",
                "document.querySelector('.row[aria-selected=true]')?.getAttribute('aria-posinset') === '1'",
            )
            < 2
        )
        page.press("/")
        began = time.monotonic()
        page.write("number-77")
        page.until("document.querySelector('#count').textContent.startsWith('111 of')")
        assert time.monotonic() - began < 3
        page.close()


def test_a_gateway_with_keys_asks_for_one(browser: Chromium, tmp_path: Path) -> None:
    with staged(tmp_path, 'keys = ["key-of-the-team"]', "enabled = true") as stage:
        stage.upstream.on("m", whole("Secret answer"))
        stage.ask(CHAT, question("m", stream=False), authorization="Bearer key-of-the-team")
        page = browser.page(stage.page)
        page.has(".login")
        assert not page.value("fetch('/ui/api/flows').then((answer) => answer.ok)")
        page.write("a-wrong-key")
        page.press("Enter")
        page.has(".login .bad", "not accepted")
        page.write("key-of-the-team")
        page.press("Enter")
        page.has(".row", "local/m")
        assert page.value("document.cookie") == ""
        page.click(".row", "local/m")
        page.press("2")
        page.has(".answer.message", "Secret answer")
        assert "key-of-the-team" not in page.value("document.documentElement.outerHTML")
        page.value("location.hash = '#/playground'")
        page.has(".model-chip")
        page.click(".message-editor textarea")
        page.write("Hello")
        page.click("#send")
        page.has(".column .answer", "Secret answer")
        page.click("#logout")
        page.has(".login")
        page.close()


@pytest.mark.parametrize(
    ("dialect", "sdk"), [("chat", "OpenAI SDK"), ("responses", "OpenAI SDK"), ("messages", "Anthropic SDK")]
)
def test_copied_programs_send_the_request_again(
    stage: Stage, browser: Chromium, tmp_path: Path, dialect: str, sdk: str
) -> None:
    answer = play(*text_frames("One moment."), *call_frames('{"city": "Oslo"}'), *end_frames("tool_calls"))
    stage.upstream.on("again", answer)
    path, body = DIALECTS[dialect]
    tool = {
        "chat": question("again")["tools"][0],
        "responses": {"type": "function", "name": "get_weather", "parameters": {"type": "object"}},
    }
    stage.ask(
        path,
        {
            "model": "local/again",
            "stream": True,
            "tools": [tool.get(dialect, {"name": "get_weather", "input_schema": {"type": "object"}})],
            **body,
        },
    )
    page = browser.page(f"{stage.page}#/flows/{stage.newest('again')['id']}")
    page.has(".flow-head")
    page.press("c")
    snippets = {}
    for name in ("curl", sdk, "pytest"):
        page.click("dialog [role=tab]", name)
        snippets[name] = str(page.value("document.querySelector('dialog textarea').value"))
    page.close()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TOOLWIRE_KEY": "any"}
    shell = subprocess.run(
        ["/bin/sh", "-c", snippets["curl"]], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "get_weather" in shell.stdout, shell.stderr
    program = subprocess.run(
        [sys.executable, "-c", snippets[sdk]], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "get_weather" in program.stdout, program.stderr
    (tmp_path / "test_again.py").write_text(snippets["pytest"], encoding="utf-8")
    stage.upstream.on("again", _whole_call('{"city": "Rome"}'), _whole_call('{"town": "Rome"}'))
    assert _pytest(tmp_path, environment) == 0
    assert _pytest(tmp_path, environment) == 1


def test_the_charts_count_what_was_sent(stage: Stage, browser: Chromium) -> None:
    prepare_repaired_argument(stage)
    page = browser.page(f"{stage.page}#/charts")
    page.has(".totals", "Tool calls")
    page.has("table caption", "By model")
    page.until("document.querySelectorAll('.chart svg rect').length > 0")
    page.has(".charts table th", "local/repaired-argument")
    assert page.faults() == []
    page.close()


@pytest.mark.parametrize("width", [390, 1360])
def test_no_view_is_wider_than_the_screen(stage: Stage, browser: Chromium, width: int) -> None:
    flow = prepare_repaired_argument(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}", width, 800)
    page.has(".flow-head")
    for tab in ("summary", "conversation", "wires", "stream", "reports", "changes"):
        page.value(f"location.hash = '#/flows/{flow}/{tab}'")
        page.until(f"document.querySelector('[data-tab={tab}]').getAttribute('aria-selected') === 'true'")
        assert page.value("document.querySelector('.detail .panel').scrollWidth") <= width
    for name in ("charts", "playground", "flows"):
        page.value(f"location.hash = '#/{name}'")
        page.until(f"document.querySelector('[data-page={name}][aria-current]')")
        assert page.value("document.documentElement.scrollWidth") <= width
    assert page.faults() == []
    page.close()


def test_the_page_requests_nothing_from_elsewhere(stage: Stage, browser: Chromium) -> None:
    flow = prepare_cut_stream(stage)
    page = browser.page(f"{stage.page}#/flows/{flow}")
    page.has(".finding.bad")
    page.value("location.hash = '#/playground'")
    page.has(".model-chip")
    assert {url for url in page.requested() if not url.startswith((stage.url, "about:"))} == set()
    page.close()


def _downloaded(folder: Path, kind: str = "html") -> Path:
    deadline = time.monotonic() + 30
    while True:
        if found := [file for file in folder.glob(f"*.{kind}") if file.stat().st_size]:
            return found[0]
        assert time.monotonic() < deadline, list(folder.iterdir())
        time.sleep(0.05)


def _seconds(page: Page, key: str, wanted: str) -> float:
    """How long the page takes after the key."""
    page.value("document.querySelector('.rows').focus()")
    began = time.monotonic()
    page.press(key)
    page.until(wanted)
    return time.monotonic() - began


def _send_many(stage: Stage, count: int) -> None:
    """Over one connection, to the demo model, with bodies as small as they get."""
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=30)
    for number in range(count):
        body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": f"number-{number}"}]}
        connection.request("POST", CHAT, json.dumps(body), {"content-type": "application/json"})
        assert connection.getresponse().read()
    connection.close()


def _whole_call(raw: str) -> list[Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": raw}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    return [reply(200, json.dumps(body).encode())]


def _pytest(folder: Path, environment: dict[str, str]) -> int:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        str(folder / "test_again.py"),
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60).returncode
