"""Secrets are removed from bodies, headers and queries, and nothing else is."""

from __future__ import annotations

import base64
import json

import pytest

from toolwire.flows.redact import WireRedaction

KEY = 'tw-"quoted"/key+1234'


@pytest.mark.parametrize(
    "text",
    [
        "here it is: sk-proj-abcdef123456.",
        "a line\\nsk-abcdef123456",
        "ghp_abcdefghijklmnop",
        "Authorization: Bearer abcdef.123456==",
        "AIzaSyA1234567890abcdefghijk",
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "hf_abcdefghijkl",
        "gsk_abcdefghijkl",
        "ghu_abcdefghijkl",
        "xai-abcdefghijklmnopq",
        "npm_abcdefghijklmnop",
        "ya29.abcdefghijklmnop",
        "ASIAIOSFODNN7EXAMPLE",
        "https://bob:abcdef@example.com/",
        "https:\\/\\/bob:abcdef@example.com\\/",
        "https%3A%2F%2Fbob%3Aabcdef%40example.com",
        "postgres://bob:abcdef@db/x",
        "https://example.com/?page=1&api_key=abcdef",
        "https://example.com/?page=1\\u0026sig=abcdef",
        "export OPENAI_API_KEY=abcdef1234",
        "DB_PASSWORD='abcdef1234' ./start",
        "curl -H 'x-api-key: abcdef1234'",
        "curl -H 'Authorization: Token abcdef1234'",
        "password: abcdef1234",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIabc (truncated",
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str) -> None:
    shown = WireRedaction().text(text)
    assert "[hidden]" in shown
    assert not any(word in shown for word in ("abcdef", "SyA", "IOSF", "sdWIi", "MIIabc"))


@pytest.mark.parametrize(
    "text",
    [
        "the task-list and the disk-usage",
        '{"max_tokens": 100, "usage": {"prompt_tokens": 5}}',
        '{"logprobs": [{"token": "Hello", "bytes": [1]}]}',
        '{"next_page_token": "abcdefghijklmnopqrstuvwxyz"}',
        '{"prompt_cache_key": "conversation-1234567890"}',
        '{"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}',
        "basic arithmetic, a bearer of news",
        "client = OpenAI(api_key=os.environ['KEY'], password=password, secret=secrets[10])",
        "def log_in(user, password=None, cookie_jar={}): ...",
        "https://example.com:8080/@user?page=12&sort=name and a@b.example",
        "export OPENAI_API_KEY=$OTHER_KEY",
        "your password: at least 12 characters",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert WireRedaction(["something-else"]).text(text) == text


@pytest.mark.parametrize(
    "body",
    [
        {"api_key": "hunter2"},
        {"metadata": {"Password": 'hunter2 "and" more'}},
        {"client_secret_value": "hunter2"},
        {"headers": {"Authorization": "hunter2"}},
        {"arguments": json.dumps({"apiKey": "hunter2", "n": 1})},
        {"arguments": json.dumps({"inner": json.dumps({"password": 'hunter2 "x"'})})},
        {"token": "hunter2hunter2hunter2"},
        {"auth": "hunter2hunter2hunter2"},
        {"api_keys": ["hunter2", "hunter2 more"], "n": 1},
        {"arguments": json.dumps({"secrets": ["hunter2", "hunter2"]})},
    ],
)
def test_members_with_the_name_of_a_secret_are_hidden_and_the_rest_stays_json(body: object) -> None:
    shown = WireRedaction().text(json.dumps(body))
    assert "hunter2" not in shown
    assert "more" not in shown
    assert json.loads(shown)


@pytest.mark.parametrize("before", ["", "u:", "us:", "user:"])
def test_a_known_secret_is_hidden_inside_base64(before: str) -> None:
    encoded = base64.b64encode(f"{before}{KEY} and more".encode()).decode()
    shown = WireRedaction([KEY]).text(encoded)
    assert shown.count("[hidden]") == 1
    assert len(shown.replace("[hidden]", "")) <= len(encoded) - len(KEY) * 8 // 6 + 1


def test_a_known_secret_is_hidden_with_the_escapes_of_other_encoders() -> None:
    for form in ("tw-key\\/1+2", "tw-key/1\\u002B2", "tw-key/1\\u002b2"):
        assert WireRedaction(["tw-key/1+2"]).text(form) == "[hidden]"


@pytest.mark.parametrize("form", [KEY, json.dumps(KEY), "tw-%22quoted%22%2Fkey%2B1234", "dHctInF1b3RlZCIva2V5KzEyMzQ="])
def test_a_known_secret_is_hidden_in_every_encoding(form: str) -> None:
    assert WireRedaction([KEY]).text(f"x {form} y").count("[hidden]") == 1
    assert "quoted" not in WireRedaction([KEY]).text(f"x {form} y")


def test_the_key_of_one_request_is_known_for_that_request() -> None:
    redaction = WireRedaction()
    assert redaction.text("my-own-key-1", "my-own-key-1") == "[hidden]"
    assert redaction.text("my-own-key-1") == "my-own-key-1"


def test_headers_and_queries_are_hidden_by_name() -> None:
    redaction = WireRedaction()
    assert redaction.header("authorization", "Bearer abc") == "Bearer [hidden]"
    assert [redaction.header(name, "abc") for name in ("x-api-key", "x-goog-api-key", "cookie", "Set-Cookie")] == [
        "[hidden]"
    ] * 4
    assert redaction.header("user-agent", "curl/8") == "curl/8"
    assert redaction.query("key=abc&alt=sse&api_key=x&access_token=y") == (
        "key=[hidden]&alt=sse&api_key=[hidden]&access_token=[hidden]"
    )
    assert redaction.query("%6bey=abc&x=1") == "%6bey=[hidden]&x=1"


def test_the_chunks_of_a_body_keep_their_places() -> None:
    pieces = [b"one sk-abc", b"def1234 two", b" three"]
    ends = [10, 21, 27]
    data, moved = WireRedaction().body(b"".join(pieces), ends)
    assert data == b"one [hidden] two three"
    assert [data[start:end] for start, end in zip([0, *moved], moved, strict=False)] == [
        b"one [hidden]",
        b" two",
        b" three",
    ]


def test_large_bodies_are_searched_in_linear_time() -> None:
    body = b'{"a": "sk-' * 20_000 + b'"token": "' * 20_000 + b'\\"secret\\": \\"' * 20_000
    body += b"-----BEGIN PRIVATE KEY-----" * 5000 + b"password=" * 20_000 + b"://a:" * 20_000 + b"?key" * 20_000
    assert len(WireRedaction(["known-secret-1"]).clean(body)) > 0
