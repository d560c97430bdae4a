from __future__ import annotations

import pytest

from toolwire.backends.http.kinds import base_of


@pytest.mark.parametrize(
    ("url", "path", "base"),
    [
        ("https://a.example/v1/", "/chat/completions", "https://a.example/v1"),
        ("https://a.example", "/v1/messages", "https://a.example"),
        ("https://a.example/v1", "/v1/messages", "https://a.example"),
        ("https://a.example/v1beta", "/v1beta/models", "https://a.example"),
        ("https://a.example/api/v1", "/v1/messages", "https://a.example/api"),
    ],
)
def test_base_url_and_path_may_both_have_the_version(url: str, path: str, base: str) -> None:
    assert base_of(url, path) == base
