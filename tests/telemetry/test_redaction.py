"""Secrets are taken out of what is written down, wherever they stand."""

from __future__ import annotations

import json

import pytest

from toolwire.telemetry.redaction import HIDDEN, Redaction, is_secret


@pytest.mark.parametrize(
    "name",
    [
        *(
            "authorization",
            "Authorization",
            "x-api-key",
            "api_key",
            "apiKey",
            "OPENAI_API_KEY",
            "key",
            "token",
            "Cookie",
        ),
        *("access_token", "client_secret", "password", "proxy-authorization", "set-cookie", "x-goog-api-key"),
    ],
)
def test_members_that_hold_a_secret_by_their_name_are_hidden(name: str) -> None:
    assert is_secret(name)
    assert Redaction().value({"a": [{name: "anything"}]}) == {"a": [{name: HIDDEN}]}


@pytest.mark.parametrize(
    "name", ["max_tokens", "author", "keyboard", "prompt_cache_key", "monkey_name", "tokens", "text"]
)
def test_other_members_are_not(name: str) -> None:
    assert Redaction().value({name: "anything"}) == {name: "anything"}


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefgh12345678",
        "ghp_abcdefgh12345678abcd",
        "AIzaSyA1234567890abcdefghijklmn",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "Bearer abcdef.123456",
        "AKIAABCDEFGHIJKLMNOP",
        "mine-and-only-mine",
    ],
)
def test_a_secret_is_known_by_its_form_or_because_it_is_ours(secret: str) -> None:
    redaction = Redaction(["mine-and-only-mine", "short"])
    shown = json.dumps(redaction.value({"content": f"look: {secret} there", secret: [secret]}))
    assert secret not in shown
    assert "look: [hidden] there" in shown


def test_of_two_secrets_the_longer_goes_first_and_short_words_stay() -> None:
    redaction = Redaction(["12345678", "12345678-and-more", "cat"])
    assert redaction.text("12345678-and-more 12345678 cat") == f"{HIDDEN} {HIDDEN} cat"


def test_a_long_text_is_cut_and_numbers_stay() -> None:
    value = Redaction().value({"data": "x" * 50_000, "n": 3, "is": True, "none": None})
    assert isinstance(value, dict)
    assert value["data"].endswith("48000 more characters")
    assert (value["n"], value["is"], value["none"]) == (3, True, None)
