"""Settings that make a bare model of Codex: as data, merged with the owner's own, and as TOML."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.codex.wire.settings import (
    bare_settings,
    flat,
    merged,
    provider_settings,
    toml,
)
from toolwire.backends.codex.wire.versions import Abilities, Version
from toolwire.errors import ConfigError

VALUES = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=1, max_size=5)


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for key, value in settings.items():
        *path, last = key.split(".")
        place = whole
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return whole


@pytest.mark.parametrize("version", [Version(0, 89), Version(0, 110), Version(0, 166), Version(0, 0)])
def test_the_shell_is_off_in_every_version_and_toml_reads_it_so(version: Version) -> None:
    settings = bare_settings(Abilities(version))
    assert settings["features.shell_tool"] is False
    assert tomllib.loads(toml(settings)) == nested(settings)


@pytest.mark.parametrize("version", [Version(0, 89), Version(0, 110), Version(0, 166), Version(0, 0)])
def test_no_version_shortens_results_or_conversations(version: Version) -> None:
    settings = bare_settings(Abilities(version))
    for key in ("tool_output_token_limit", "model_auto_compact_token_limit", "model_context_window"):
        assert settings[key] >= 100_000_000


def test_new_versions_get_what_old_ones_do_not_know() -> None:
    assert "features.remote_models" in bare_settings(Abilities(Version(0, 89)))
    assert "include_environment_context" not in bare_settings(Abilities(Version(0, 89)))
    assert "features.remote_models" not in bare_settings(Abilities(Version(0, 166)))
    assert bare_settings(Abilities(Version(0, 166)))["include_environment_context"] is False


def test_retries_are_left_to_the_gateway_and_the_login_to_codex() -> None:
    written = tomllib.loads(toml(provider_settings(7)))
    provider = written["model_providers"]["toolwire"]
    assert written["model_provider"] == "toolwire"
    assert (provider["request_max_retries"], provider["stream_max_retries"]) == (0, 0)
    assert (provider["requires_openai_auth"], provider["stream_idle_timeout_ms"]) == (True, 7000)


def test_the_owners_settings_win_with_all_that_lies_below() -> None:
    bare = {"features.shell_tool": False, "features.goals": False, "skills.include_instructions": False, "a": 1}
    own = {"features": {"shell_tool": True}, "skills": "all", "a.b": 2}
    assert merged(bare, own) == {"features.shell_tool": True, "features.goals": False, "skills": "all", "a.b": 2}


def test_tables_become_dotted_keys() -> None:
    assert flat({"a": {"b": {"c": 1}, "d": [1]}, "e": {}}) == {"a.b.c": 1, "a.d": [1]}


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_toml_reads_back_what_was_written(settings: dict[str, Any]) -> None:
    assert tomllib.loads(toml(settings)) == settings


def test_toml_holds_numbers_and_tables_in_lists() -> None:
    assert tomllib.loads(toml({"a": Decimal("1.5"), "b": [{"c d": 1}]})) == {"a": 1.5, "b": [{"c d": 1}]}


def test_toml_has_no_null() -> None:
    with pytest.raises(ConfigError, match="a value that TOML can express"):
        toml({"a": None})
