"""TOML, changed line by line: other lines stay, and what cannot be changed with certainty is refused."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.cli.clients.client import Setting
from toolwire.cli.clients.toml_text import apply_settings
from toolwire.errors import ConfigError

SETTINGS = [
    Setting(("model",), "m"),
    Setting(("model_providers", "toolwire"), {"name": "toolwire", "base_url": "http://127.0.0.1:1/v1"}),
    Setting(("model_providers", "toolwire", "env_key"), None),
]
PROVIDER = '[model_providers.toolwire]\nname = "toolwire"\nbase_url = "http://127.0.0.1:1/v1"\n'


def test_a_new_file() -> None:
    assert apply_settings("", SETTINGS) == f'model = "m"\n\n{PROVIDER}'


def test_comments_and_other_tables_stay() -> None:
    before = '# mine\nmodel = "old"   # the # best\napproval = "never"\n\n# a table\n[mcp.x]\nenv = { A = "1" }\n'
    text = apply_settings(before, SETTINGS)
    assert text == before.replace('"old"', '"m"') + "\n" + PROVIDER
    assert apply_settings(text, SETTINGS) == text


def test_keys_are_added_to_their_table() -> None:
    before = '[model_providers.toolwire]\nname = "toolwire"\nextra = 1\n\n[other]\nmodel = "not this"\n'
    text = apply_settings(before, SETTINGS)
    assert text == (
        'model = "m"\n[model_providers.toolwire]\nname = "toolwire"\nextra = 1\nbase_url = "http://127.0.0.1:1/v1"\n'
        '\n[other]\nmodel = "not this"\n'
    )


def test_a_key_at_the_top_stands_before_the_first_table_and_its_comment() -> None:
    assert apply_settings("# one\n\n# two\n[a]\n", [Setting(("model",), "m")]) == '# one\n\nmodel = "m"\n# two\n[a]\n'
    assert apply_settings("# only words", [Setting(("model",), "m")]) == '# only words\nmodel = "m"'


def test_a_key_is_removed() -> None:
    text = apply_settings(f'{PROVIDER}env_key = "X"\n', SETTINGS)
    assert "env_key" not in text
    assert tomllib.loads(text)["model_providers"]["toolwire"]["name"] == "toolwire"


def test_windows_line_ends_stay() -> None:
    text = apply_settings('model = "old" # c\r\n[a]\r\nb = 1\r\n', SETTINGS)
    assert text.count("\n") == text.count("\r\n")
    assert text.startswith('model = "m" # c\r\n')
    assert apply_settings(text, SETTINGS) == text


def test_lines_inside_a_long_string_are_not_keys() -> None:
    before = 'notes = """\nmodel = "trap"\n[model_providers.toolwire]\n"""\n'
    text = apply_settings(before, SETTINGS)
    assert tomllib.loads(text)["notes"] == 'model = "trap"\n[model_providers.toolwire]\n'
    assert tomllib.loads(text)["model"] == "m"


def test_dotted_keys_are_changed_where_they_stand() -> None:
    before = 'model_providers.toolwire.name = "old"\nmodel = "m"\n'
    text = apply_settings(before, [Setting(("model_providers", "toolwire", "name"), "toolwire")])
    assert text == 'model_providers.toolwire.name = "toolwire"\nmodel = "m"\n'


@pytest.mark.parametrize(
    "text",
    [
        'model_providers = { toolwire = { name = "x" } }',
        'model_providers.toolwire = { name = "toolwire" }',
        'model = """\nold\n"""',
        "model = [\n1,\n2]",
        'model_providers = "text"',
        "[[model_providers]]\nname = 1",
    ],
)
def test_an_unusual_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        apply_settings(text, SETTINGS)


@pytest.mark.parametrize("text", ["model = ", "[a\n", "a = 1\na = 2\n", "\x00", "a = " + "[" * 5000])
def test_what_is_not_toml_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="this is not TOML"):
        apply_settings(text, SETTINGS)


KEYS = st.sampled_from(["model", "other", "model_provider", "a-b"])
VALUES = st.sampled_from(['"x"', "'lit # eral'", "1", "true", "[1, 2]", '"a \\" # b"', '{ k = "v" }', '"""long"""'])


@given(st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES), st.sampled_from(["", "  # words", " # \"q'"]))
def test_other_keys_keep_their_values(top: dict[str, str], table: dict[str, str], comment: str) -> None:
    lines = [f"{key} = {value}{comment}" for key, value in top.items()]
    lines += ["[mine]", *(f"{key} = {value}{comment}" for key, value in table.items()), ""]
    before = "\n".join(lines)
    text = apply_settings(before, SETTINGS)
    expected = tomllib.loads(before) | {"model": "m"}
    assert {key: value for key, value in tomllib.loads(text).items() if key != "model_providers"} == expected
    assert apply_settings(text, SETTINGS) == text
