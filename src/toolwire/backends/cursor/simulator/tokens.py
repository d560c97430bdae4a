"""Who may come in: tokens that were given, and API keys that are exchanged for one."""

from __future__ import annotations

import base64
import json
import secrets
import time

from ....types import JsonObject
from .faults import ERRORS, Refused
from .settings import Settings


class Passes:
    """The tokens of one simulator."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._issued: dict[str, float] = {}  # token -> when it expires
        self._refreshing: set[str] = set()
        self.revoked: set[str] = set()

    def check(self, authorization: str) -> None:
        """Raises Refused for who is not known, or no longer."""
        token = authorization.removeprefix("Bearer ")
        if token in self.revoked or (token not in self._settings.tokens and token not in self._issued):
            raise Refused(ERRORS["unauthorized"])
        if token in self._issued and self._issued[token] <= time.time():
            raise Refused(ERRORS["token_expired"])

    def exchange(self, authorization: str) -> tuple[int, JsonObject]:
        """Status and body; a refresh token is as good as a key."""
        key = authorization.removeprefix("Bearer ")
        if key not in self._settings.api_keys and key not in self._refreshing:
            return 401, {"code": "unauthenticated", "message": "Invalid API key"}
        if self._settings.is_sign_in_barred:
            return 403, {"code": "permission_denied", "message": "sign_in_policy_violation"}
        return 200, self._issue()

    def _issue(self) -> JsonObject:
        expires = time.time() + self._settings.token_seconds
        claims = {"sub": "auth0|simulated", "exp": int(expires), "type": "session", "jti": secrets.token_hex(8)}
        token = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}.{secrets.token_urlsafe(32)}"
        refresh = f"refresh_{secrets.token_hex(16)}"
        self._issued[token] = expires
        self._refreshing.add(refresh)
        return {"accessToken": token, "refreshToken": refresh}


def _encoded(value: JsonObject) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
