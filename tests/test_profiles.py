"""Quirks of back ends, as data: which profile a back end gets."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.dialects.codec_harness import make_request
from toolwire.config.file import load
from toolwire.dialects import DIALECTS
from toolwire.profiles import (
    ANTHROPIC,
    ANTHROPIC_API,
    AZURE,
    BY_HOST,
    BY_KIND,
    BY_NAME,
    CODEX,
    CURSOR,
    DEEPSEEK,
    GROQ,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    PLAIN,
    PLAIN_CHAT,
    RESPONSES,
    VSCODE,
    IdRule,
    Profile,
    SchemaRules,
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
        ("openai-chat", "https://mine.openai.azure.com/openai/v1", "", AZURE),
        ("openai-chat", "https://MINE.OpenAI.Azure.com/openai/v1", "", AZURE),
        ("openai-chat", "https://openai.azure.com/v1", "", PLAIN_CHAT),
        ("openai-chat", "https://mine.openai.azure.com.example.org/v1", "", PLAIN_CHAT),
        ("openai-chat", "https://mineopenai.azure.com/v1", "", PLAIN_CHAT),
        ("openai-chat", "https://a.api.groq.com/v1", "", PLAIN_CHAT),
        ("openai-responses", "https://mine.openai.azure.com/openai/v1", "", RESPONSES),
        ("openai-chat", "http://localhost/v1", "", PLAIN_CHAT),
        ("openai-chat", "http://127.0.0.1:11434/v1", "ollama", OLLAMA),
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


def test_H111_H112_a_server_that_may_have_a_template_gets_the_plainest_form() -> None:
    plain = {name for name, profile in BY_NAME.items() if not profile.has_null_content}
    plain = {name for name in plain if not name.startswith(("gemini", "anthropic")) and not name.endswith("responses")}
    assert plain == {
        "chat", "cerebras", "xai", "fireworks", "together", "ollama", "vllm", "sglang", "llamacpp", "lmstudio",
    }  # fmt: skip
    anywhere = {name for name, profile in BY_NAME.items() if profile.has_system_messages}
    assert anywhere == {"openai", "deepseek", "kimi", "openrouter", "xai"}


def test_H147_limits_of_tools_are_those_that_are_known() -> None:
    assert {name: profile.max_tools for name, profile in BY_NAME.items() if profile.max_tools} == {
        "openai": 128, "openai-responses": 128, "azure": 128, "groq": 128,
    }  # fmt: skip


PAGE = (Path(__file__).resolve().parents[1] / "docs" / "providers.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]


def shown(value: Any) -> str:
    """As the page writes it."""
    match value:
        case bool():
            return str(value).lower()
        case frozenset():
            return ", ".join(sorted(value))
        case IdRule() | SchemaRules():
            plain = type(value)()
            fields = [field for field in value.__struct_fields__ if getattr(value, field) != getattr(plain, field)]
            return ", ".join(f"{field}={getattr(value, field)}" for field in fields)
    return str(value)


def test_the_page_lists_the_hosts() -> None:
    listed = {
        (kind.strip("`"), host.replace("*", "")): name.strip("`")
        for name, kind, hosts in [row for row in ROWS if len(row) == 3]
        for host in re.findall(r"`([^`]+)`", hosts)
    }
    assert listed == {key: profile.name for key, profile in BY_HOST.items()}
    alone = re.findall(r"`([^`]+)`", PAGE.split("By name alone:")[1].split("\n\n")[0])
    assert set(alone) == BY_NAME.keys() - set(listed.values())


def test_the_page_lists_what_is_set_for_chat() -> None:
    listed = {
        (name.strip("`"), setting.strip("`")): value for name, setting, value, _ in [r for r in ROWS if len(r) == 4]
    }
    others = [
        name for name in BY_NAME if not name.startswith(("gemini", "anthropic")) and not name.endswith("responses")
    ]
    assert listed == {
        (name, field): shown(getattr(BY_NAME[name], field))
        for name in others
        for field in Profile.__struct_fields__
        if field != "name" and getattr(BY_NAME[name], field) != getattr(PLAIN_CHAT, field)
    }
    assert all(why for *_, why in ROWS)


def test_the_examples_of_the_page_load(tmp_path: Path) -> None:
    samples = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(samples) == 3
    for sample in samples:
        path = tmp_path / "toolwire.toml"
        path.write_text(sample, encoding="utf-8")
        config = load(path, {"AZURE_OPENAI_API_KEY": "a", "ANTHROPIC_AUTH_TOKEN": "sk-ant-oat01-x"})
        (name,) = tomllib.loads(sample)["backends"]
        assert config.backends[0].name == name


def test_refused_members_are_dropped_and_reported() -> None:
    sampling = {"temperature": 0.5, "stop_sequences": ["x"], "top_k": 3}
    request = make_request("messages", **sampling)
    body = json.loads(DIALECTS["chat"].encode_request(request, PLAIN_CHAT).body)
    refusing = Profile(name="odd", refused=frozenset({"temperature", "logprobs"}))
    encoded = DIALECTS["chat"].encode_request(request, refusing)
    assert json.loads(encoded.body) == {key: value for key, value in body.items() if key != "temperature"}
    assert [(loss.feature, "odd" in loss.why) for loss in encoded.losses if loss.feature == "temperature"] == [
        ("temperature", True)
    ]


def test_members_of_the_same_dialect_are_unchanged() -> None:
    body = json.loads(DIALECTS["chat"].encode_request(make_request("chat", n=2, logprobs=True), GROQ).body)
    assert (body["n"], body["logprobs"]) == (2, True)


def test_reasoning_goes_back_by_the_name_that_each_server_has_for_it() -> None:
    named = {name: profile.reasoning_field for name, profile in BY_NAME.items() if profile.reasoning_field}
    assert named == {
        "deepseek": "reasoning_content",
        "kimi": "reasoning_content",
        "fireworks": "reasoning_content",
        "llamacpp": "reasoning_content",
        "ollama": "reasoning",
        "vllm": "reasoning",
        "sglang": "reasoning_content",
    }


def test_servers_that_constrain_their_output_are_those_that_are_known() -> None:
    known = {name for name, profile in BY_NAME.items() if profile.has_output_schemas}
    assert known == {
        "openai", "openai-responses", "ollama", "vllm", "sglang", "llamacpp", "lmstudio", "gemini", "gemini-api", "gemini-oauth",
    }  # fmt: skip
    assert {name for name, profile in BY_NAME.items() if profile.has_output_schemas is False} == {
        "deepseek",
        "gemini-subset",
    }
    assert not any(profile.has_output_schemas for profile in (PLAIN, CODEX, CURSOR, VSCODE))
