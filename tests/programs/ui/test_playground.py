"""The playground in a real Chromium: conversations with tools, several models side by side, recorded requests sent again."""

from __future__ import annotations

import json

import pytest

from tests.programs.ui.chromium import Chromium, Page
from tests.programs.ui.stage import Stage, call_frames, end_frames, play, text_frames, whole

pytestmark = pytest.mark.slow


def test_a_function_of_the_page_answers_the_call(stage: Stage, browser: Chromium) -> None:
    call = play(*call_frames('{"city": "Bern"}'), *end_frames("tool_calls"))
    stage.upstream.on("tools", call, play(*text_frames("It is ", "fine in Bern."), *end_frames()))
    page = _playground(stage, browser, "local/tools")
    _choose(page, "Add an example tool", "get_weather")
    _fill(page, "Text of message 1", "How is the weather in Bern?")
    page.press("Enter", control=True)
    page.has(".column .card.result", "Bern")
    page.has(".column .answer.message", "It is fine in Bern.")
    first, second = (request.json for request in stage.upstream.requests("tools"))
    assert first["tools"][0]["function"]["name"] == "get_weather"
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "tool"]
    assert json.loads(second["messages"][2]["content"])["city"] == "Bern"
    page.click("button", "Continue in the editor")
    page.until("document.querySelectorAll('.message-editor').length === 5")
    assert page.faults() == []
    page.close()


def test_calls_of_several_models_are_answered_by_hand(stage: Stage, browser: Chromium) -> None:
    for name in ("left", "right"):
        call = play(*call_frames(f'{{"city": "{name}"}}', call_id=f"call_{name}"), *end_frames("tool_calls"))
        stage.upstream.on(name, call, play(*text_frames(f"The {name} ", "model knows."), *end_frames()))
    page = _playground(stage, browser, "local/left", "local/right")
    _fill(page, "Tools as JSON", json.dumps({"name": "get_weather", "inputSchema": {"type": "object"}}))
    _fill(page, "Text of message 1", "Compare")
    page.click("#send")
    page.has(".column[data-model='local/left'][data-state=waiting]")
    page.has(".column[data-model='local/right'][data-state=waiting]")
    page.click(".column[data-model='local/right'] textarea")
    page.write("31 degrees")
    page.click(".column[data-model='local/right'] button", "Send the result")
    page.has(".column[data-model='local/right']", "The right model knows.")
    assert stage.upstream.requests("right")[1].json["messages"][2] == {
        "role": "tool",
        "tool_call_id": "call_right",
        "content": "31 degrees",
    }
    assert len(stage.upstream.requests("left")) == 1
    page.close()


def test_a_recorded_request_is_edited_and_sent_again(stage: Stage, browser: Chromium) -> None:
    stage.upstream.on("resent", whole("First answer"), whole("Second answer"))
    question = {"model": "local/resent", "max_tokens": 50, "messages": [{"role": "user", "content": "Say one."}]}
    stage.ask("/v1/messages", question)
    page = browser.page(f"{stage.page}#/flows/{stage.newest('resent')['id']}")
    page.click("button", "Edit and resend")
    page.until("document.querySelector('#raw')?.value.includes('Say one.')")
    _fill(page, "Request body as JSON", json.dumps(question).replace("one", "two"))
    page.click("#send")
    page.has(".column", "Second answer")
    assert stage.upstream.requests("resent")[1].json["messages"][0]["content"] == "Say two."
    assert [flow["path"] for flow in stage.flows()] == ["/v1/messages", "/v1/messages"]
    page.close()


def test_an_error_of_the_back_end_is_shown(stage: Stage, browser: Chromium) -> None:
    page = _playground(stage, browser, "local/without-a-play")
    _fill(page, "Text of message 1", "Hello")
    page.click("#send")
    page.has(".column[data-state=failed] .bad", "no play for this")
    page.close()


def _playground(stage: Stage, browser: Chromium, *models: str) -> Page:
    page = browser.page(f"{stage.page}#/playground")
    page.has(".model-chip")
    page.click(".model-chip button")
    for model in models:
        page.click("#model")
        page.write(model)
        page.press("Enter")
        page.has(".model-chip", model)
    return page


def _fill(page: Page, label: str, text: str) -> None:
    """Replaces the text of the field with this label, as a user does."""
    page.value(f"document.querySelector({json.dumps(f'[aria-label={json.dumps(label)}]')}).select()")
    page.value(f"document.querySelector({json.dumps(f'[aria-label={json.dumps(label)}]')}).focus()")
    page.write(text)


def _choose(page: Page, label: str, option: str) -> None:
    field = f"document.querySelector({json.dumps(f'[aria-label^={json.dumps(label)}]')})"
    page.value(f"{field}.value = {json.dumps(option)}; {field}.dispatchEvent(new Event('change'))")
