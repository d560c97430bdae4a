"""Modules of the page without its elements, in the browser that they are written for."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from tests.programs.ui.chromium import Chromium, Page
from tests.programs.ui.stage import Stage

pytestmark = pytest.mark.slow
FLOW = {
    "id": "flow_1",
    "model": "local/qwen3",
    "sent_model": "qwen3",
    "backend": "local",
    "dialect": "messages",
    "backend_dialect": "chat",
    "path": "/v1/messages",
    "status": 200,
    "outcome": "ok",
    "error": "",
    "message": "",
    "key": "alice",
    "repairs": 1,
    "losses": 0,
    "corrections": 0,
    "stream": True,
    "verbatim": False,
    "conversation": "abc",
    "preview": "What is the Weather?",
    "calls": [{"id": "c", "name": "get_weather", "valid_before": False, "valid_after": True}],
    "timings": {"total": 2.5},
}


@pytest.fixture(scope="module")
def page(shared_stage: Stage, browser: Chromium) -> Page:
    return browser.page(shared_stage.page)


def _call(page: Page, module: str, function: str, *arguments: Any) -> Any:
    given = ", ".join(json.dumps(one) for one in arguments)
    return page.value(f"import('/ui/{module}').then((module) => module.{function}({given}))")


def _is_shown(page: Page, filter_text: str) -> bool:
    script = f"import('/ui/filter.js').then(({{parseFilter}}) => parseFilter({json.dumps(filter_text)}).test({json.dumps(FLOW)}))"
    return bool(page.value(script))


def test_filter_terms(page: Page) -> None:
    wanted = ["", "weather", '"the weather"', "model:qwen", "tool:get_", "is:repaired", ">2s", "<3000ms", "-is:error"]
    wanted += ["dialect:chat", "status:20", "key:alice", "is:repaired model:qwen weather", "-snow"]
    unwanted = [
        "snow",
        "model:gpt",
        "is:error",
        "is:lost",
        ">3s",
        "-weather",
        "-is:repaired",
        "weather snow",
        "is:verbatim",
    ]
    assert [text for text in wanted if not _is_shown(page, text)] == []
    assert [text for text in unwanted if _is_shown(page, text)] == []


def test_the_calculator_of_the_page(page: Page) -> None:
    for text in ("1 + 2 * 3", "(1 + 2) * 3", "-4 / 2", "10 % 4 - 1", "2 * (3 + 4) / 7"):
        assert _call(page, "page_functions.js", "calculate", text) == eval(text)
    assert _call(page, "page_functions.js", "calculate", "2 ^ 3 ^ 2") == 512
    for text in ("alert(1)", "1 +", "(1", "", "1; 2", "constructor"):
        script = f"import('/ui/page_functions.js').then((m) => {{ try {{ m.calculate({json.dumps(text)}); return false; }} catch {{ return true; }} }})"
        assert page.value(script), text


def test_templates_insert_arguments_as_text(page: Page) -> None:
    template = '{"city": "{{city}}", "days": {{ days }}, "deep": "{{a.b}}", "none": "{{none}}"}'
    given = {"city": "Bern", "days": [1, 2], "a": {"b": "x"}}
    filled = _call(page, "page_functions.js", "fillTemplate", template, given)
    assert filled == '{"city": "Bern", "days": [1,2], "deep": "x", "none": "{{none}}"}'


def test_python_literals_have_the_same_value(page: Page) -> None:
    value = {
        "a": [True, False, None, 1, -2.5, "quote \" and ' and \\ and \n \u2028 \x7f é"],
        "empty": [{}, []],
        "long": ["x" * 60, "y" * 60],
    }
    assert ast.literal_eval(_call(page, "snippets.js", "python", value)) == value


def test_pasted_tools_of_any_form(page: Page) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    forms = [
        {"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}},
        [{"type": "function", "name": "t", "description": "d", "parameters": schema}],
        [{"name": "t", "description": "d", "input_schema": schema}],
        {"tools": [{"name": "t", "description": "d", "inputSchema": schema}]},
        [{"functionDeclarations": [{"name": "t", "description": "d", "parameters": schema}]}],
    ]
    for form in forms:
        found = _call(page, "turns.js", "readToolList", json.dumps(form))
        assert found == [{"type": "function", "function": {"name": "t", "description": "d", "parameters": schema}}]


def test_differences_by_line(page: Page) -> None:
    script = "import('/ui/changes.js').then(({lineDiff}) => [...lineDiff('a\\nb\\nc\\nd', 'a\\nx\\nc\\nd\\ne').children].map((one) => one.textContent))"
    assert page.value(script) == [" a", "-b", "+x", " c", " d", "+e"]
