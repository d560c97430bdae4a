"""Settings that make a bare model of Codex: as data, merged with the owner's own, and as TOML."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.backends.codex.wire.settings import (
    Provider,
    bare_settings,
    catalog,
    flat,
    merged,
    provider_settings,
    toml,
)
from toolwire.backends.codex.wire.versions import Version
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
    settings = bare_settings(version)
    assert settings["features.shell_tool"] is False
    assert tomllib.loads(toml(settings)) == nested(settings)


@pytest.mark.parametrize("version", [Version(0, 89), Version(0, 110), Version(0, 166), Version(0, 0)])
def test_no_version_shortens_results_or_conversations(version: Version) -> None:
    settings = bare_settings(version)
    for key in ("tool_output_token_limit", "model_auto_compact_token_limit", "model_context_window"):
        assert settings[key] >= 100_000_000


def test_new_versions_get_what_old_ones_do_not_know() -> None:
    assert "features.remote_models" in bare_settings(Version(0, 89))
    assert "include_environment_context" not in bare_settings(Version(0, 89))
    assert "features.remote_models" not in bare_settings(Version(0, 166))
    assert bare_settings(Version(0, 166))["include_environment_context"] is False


def test_retries_are_left_to_the_gateway() -> None:
    written = tomllib.loads(toml(provider_settings(Provider(id="gw", base_url="http://h/v1", env_key="K"))))
    provider = written["model_providers"]["gw"]
    assert written["model_provider"] == "gw"
    assert (provider["request_max_retries"], provider["stream_max_retries"]) == (0, 0)
    assert (provider["base_url"], provider["env_key"], provider["wire_api"]) == ("http://h/v1", "K", "responses")
    assert "requires_openai_auth" not in provider


def test_without_a_key_the_users_own_login_is_used() -> None:
    settings = provider_settings(Provider(id="gw"))
    assert settings["model_providers.gw.requires_openai_auth"] is True
    assert "model_providers.gw.base_url" not in settings


def test_a_provider_needs_a_plain_name() -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        provider_settings(Provider(id="a.b"))


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
    with pytest.raises(ConfigError, match="what TOML can hold"):
        toml({"a": None})


def test_a_catalogue_gives_no_model_tools_of_its_own() -> None:
    models = catalog(["m", "n"], "Be brief.")["models"]
    assert [model["slug"] for model in models] == ["m", "n"]
    assert [model["priority"] for model in models] == [1, 2]
    for model in models:
        assert model["base_instructions"] == "Be brief."
        assert model["experimental_supported_tools"] == []
        assert model["shell_type"] == "disabled"
        assert (model["tool_mode"], model["multi_agent_version"], model["apply_patch_tool_type"]) == (None, None, None)
