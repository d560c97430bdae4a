"""Anthropic Messages: what goes with a request beside its body: a key or a token, the version, and features."""

from __future__ import annotations

from collections.abc import Mapping

from ...profiles import Profile
from ..base import bearer
from ..shared.forwarded_headers import passed_on

_TOKEN = "sk-ant-oat"  # how tokens of accounts begin; keys begin with sk-ant-api


def headers(profile: Profile, key: str, given: Mapping[str, str]) -> dict[str, str]:
    """The client's own version counts; from some version on the key travels as a Bearer, and a token always does."""
    passed = passed_on(given, "anthropic-version", "anthropic-beta")
    version = passed.setdefault("anthropic-version", profile.api_version or "2023-06-01")
    is_token = profile.key_header == "authorization" or key.startswith(_TOKEN)
    if is_token and key and profile.oauth_beta:
        passed["anthropic-beta"] = _with_feature(passed.get("anthropic-beta", ""), profile.oauth_beta)
    is_bearer = is_token or version >= (profile.bearer_from_version or "9")
    return passed | (bearer(key) if is_bearer else {"x-api-key": key} if key else {})


def _with_feature(listed: str, feature: str) -> str:
    named = [name for name in map(str.strip, listed.split(",")) if name]
    return ",".join(named if feature in named else [*named, feature])
