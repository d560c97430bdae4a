"""Quirks of back ends, as data: which profile a back end gets."""

from __future__ import annotations

import pytest

from toolwire.profiles import (
    ANTHROPIC,
    ANTHROPIC_API,
    BY_KIND,
    BY_NAME,
    DEEPSEEK,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    PLAIN_CHAT,
    RESPONSES,
    Profile,
    profile_for,
)


@pytest.mark.parametrize(
    ("kind", "url", "name", "profile"),
    [
        ("openai-chat", "https://api.openai.com/v1", "", OPENAI_CHAT),
        ("openai-chat", "https://API.OpenAI.com/v1", "", OPENAI_CHAT),
        ("openai-chat", "https://api.deepseek.com", "", DEEPSEEK),
        ("openai-chat", "http://127.0.0.1:11434/v1", "", PLAIN_CHAT),
        ("openai-chat", "https://api.openai.com.example.org/v1", "", PLAIN_CHAT),
        ("openai-responses", "https://api.openai.com/v1", "", OPENAI_RESPONSES),
        ("openai-responses", "http://127.0.0.1/v1", "", RESPONSES),
        ("anthropic", "https://api.anthropic.com", "", ANTHROPIC_API),
        ("anthropic", "https://api.deepseek.com/anthropic", "", ANTHROPIC),
        ("openai-chat", "http://proxy", "deepseek", DEEPSEEK),
        ("openai-chat", "", "", PLAIN_CHAT),
        ("demo", "", "", PLAIN_CHAT),
    ],
)
def test_name_then_host_then_kind(kind: str, url: str, name: str, profile: Profile) -> None:
    assert profile_for(kind, url, name) is profile


def test_an_unknown_name_is_not_guessed() -> None:
    with pytest.raises(KeyError):
        profile_for("openai-chat", "", "nobody")


def test_names_are_unique_and_defaults_plain() -> None:
    assert all(profile.name == name for name, profile in BY_NAME.items())
    assert set(BY_KIND.values()) <= set(BY_NAME.values())
    assert not PLAIN_CHAT.has_developer_role
    assert PLAIN_CHAT.reasoning_field == ""


def test_servers_that_we_do_not_know_have_no_limits() -> None:
    for profile in (PLAIN_CHAT, DEEPSEEK, RESPONSES, ANTHROPIC):
        assert profile.max_image_bytes == profile.max_file_bytes == profile.max_images == profile.max_request_bytes == 0
    assert not PLAIN_CHAT.has_files


def test_H111_H112_who_may_have_a_template_is_told_the_plainest_form() -> None:
    plain = {name for name, profile in BY_NAME.items() if not profile.has_null_content}
    plain -= {"gemini", "gemini-api", "gemini-oauth", "gemini-subset"}
    assert plain == {"chat", "responses", "openai-responses", "openrouter-responses", "anthropic", "anthropic-api"}
    anywhere = {name for name, profile in BY_NAME.items() if profile.has_system_messages}
    assert anywhere == {"openai", "deepseek", "kimi", "openrouter"}


def test_H147_limits_of_tools_are_those_that_are_known() -> None:
    assert {name: profile.max_tools for name, profile in BY_NAME.items() if profile.max_tools} == {
        "openai": 128, "openai-responses": 128,
    }  # fmt: skip
