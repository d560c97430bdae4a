"""YAML, changed line by line: top-level keys and one list of objects; everything else stays or is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.cli.clients.client import ListItem, Setting
from toolwire.cli.clients.yaml_text import apply_settings
from toolwire.errors import ConfigError

MODEL = {"provider": "openai", "apiBase": "http://127.0.0.1:1/v1", "roles": ["chat"]}
SETTINGS = [Setting(("name",), "toolwire", is_default=True), Setting(("models", ListItem("name", "toolwire")), MODEL)]
ROWS = ['- name: "toolwire"', '  provider: "openai"', '  apiBase: "http://127.0.0.1:1/v1"', '  roles: ["chat"]']


def rows(indent: str) -> str:
    return "".join(f"{indent}{row}\n" for row in ROWS)


def test_a_new_file() -> None:
    assert apply_settings("", SETTINGS) == f'name: "toolwire"\nmodels:\n{rows("  ")}'


@pytest.mark.parametrize("indent", ["", "  ", "    "])
def test_an_element_is_added_first_and_in_the_manner_of_the_file(indent: str) -> None:
    before = f"# mine\nname: My setup\nmodels:\n{indent}- name: gpt # best\n{indent}  roles:\n{indent}    - chat\n\n# rules\nrules:\n  - be kind\n"
    text = apply_settings(before, SETTINGS)
    assert text == before.replace("models:\n", f"models:\n{rows(indent)}")
    assert apply_settings(text, SETTINGS) == text


def test_our_element_is_changed_and_what_else_it_has_stays() -> None:
    before = "name: x\nmodels:\n  - name: 'toolwire'\n    provider: ollama # why\n    own: 1\n    roles:\n      - edit\n  - name: other\n"
    text = apply_settings(before, SETTINGS)
    assert text == (
        "name: x\nmodels:\n  - name: 'toolwire'\n    provider: \"openai\"  # why\n    own: 1\n    roles:\n      - edit\n"
        '    apiBase: "http://127.0.0.1:1/v1"\n  - name: other\n'
    )
    assert apply_settings(text, SETTINGS) == text


@pytest.mark.parametrize("empty", ["models:", "models: []", "models: null", "models: [] # none"])
def test_an_empty_list_is_filled(empty: str) -> None:
    text = apply_settings(f"name: x\n{empty}\nrules: []\n", SETTINGS)
    assert rows("  ") in text
    assert text.endswith("rules: []\n")


def test_a_key_is_replaced_and_its_comment_stays() -> None:
    settings = [Setting(("model",), "openai/m"), Setting(("openai-api-base",), "u")]
    before = "model: gpt-4 # the old one\ndark-mode: true\n"
    text = apply_settings(before, settings)
    assert text == 'model: "openai/m"  # the old one\ndark-mode: true\nopenai-api-base: "u"\n'
    assert apply_settings(text, settings) == text


@pytest.mark.parametrize("value", ["openai/m", '"openai/m"', "'openai/m'", "openai/m   # c"])
def test_an_equal_value_is_left_as_it_is_written(value: str) -> None:
    text = f"model: {value}"
    assert apply_settings(text, [Setting(("model",), "openai/m")]) == text


def test_windows_line_ends_stay() -> None:
    text = apply_settings("name: x\r\nmodels:\r\n- name: a\r\n", SETTINGS)
    assert text.count("\n") == text.count("\r\n")
    assert apply_settings(text, SETTINGS) == text


def test_a_text_block_that_looks_like_keys_is_not_touched() -> None:
    before = "notes: |\n  models:\n  - name: toolwire\nname: x\n"
    text = apply_settings(before, SETTINGS)
    assert text == f"{before}models:\n{rows('  ')}"


@pytest.mark.parametrize(
    "text",
    [
        "{name: x}",
        "- a\n- b\n",
        "models: [{name: a}]\n",
        "models: &all\n- name: a\n",
        "models:\n  a: 1\n",
        "name: a\n---\nname: b\n",
        "name: a\nname: b\n",
        "models:\n- name: toolwire\n  provider: >\n    openai\n",
        "models:\n- name: toolwire\n  provider: {a: 1}\n",
        "models:\n- name: toolwire\n  provider: a\n\n    b\n",
        "models:\n-\n  name: toolwire\n",
        "models:\n    folded\n  - name: a\n",
        "  name: a\n",
        "%YAML 1.2\n---\nname: a\n",
        "\tname: a\n",
        "? complex\n: key\n",
    ],
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        apply_settings(text, SETTINGS)


def test_a_value_over_several_lines_is_refused() -> None:
    for text in ("model: a\n  b\n", "model: &a b\n", "model: >\n  b\n"):
        with pytest.raises(ConfigError, match="with several lines"):
            apply_settings(text, [Setting(("model",), "m")])


def test_a_place_that_yaml_files_do_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="not supported"):
        apply_settings("", [Setting(("a", "b"), 1)])


@given(
    st.lists(
        st.sampled_from(["a: 1", "b:", "  - x", "# c", "", "name: n", "models:", "- name: q", "  k: v"]), max_size=8
    )
)
def test_lines_are_unchanged_or_the_file_is_refused(lines: list[str]) -> None:
    before = "\n".join(lines)
    try:
        text = apply_settings(before, SETTINGS)
    except ConfigError:
        return
    kept = iter(text.splitlines())
    assert all(line in kept for line in lines if line.strip())
    assert apply_settings(text, SETTINGS) == text
