from __future__ import annotations

import base64
import json
import time

import pytest

from toolwire.backends.cursor.simulator import API_KEY, TOKEN, Settings
from toolwire.backends.cursor.simulator.faults import Refused
from toolwire.backends.cursor.simulator.tokens import Passes


def refusal(passes: Passes, token: str) -> str:
    with pytest.raises(Refused) as caught:
        passes.check(f"Bearer {token}")
    return caught.value.error.name


def test_a_token_says_when_it_expires() -> None:
    passes = Passes(Settings(token_seconds=100))
    status, body = passes.exchange(f"Bearer {API_KEY}")
    header, claims, signature = body["accessToken"].split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert (status, bool(header), bool(signature)) == (200, True, True)
    assert 90 < decoded["exp"] - time.time() <= 100
    passes.check(f"Bearer {body['accessToken']}")


def test_a_token_expires() -> None:
    passes = Passes(Settings(token_seconds=-1))
    _, body = passes.exchange(f"Bearer {API_KEY}")
    assert refusal(passes, body["accessToken"]) == "ERROR_AUTH_TOKEN_EXPIRED"


def test_a_refresh_token_is_as_good_as_a_key() -> None:
    passes = Passes(Settings())
    _, first = passes.exchange(f"Bearer {API_KEY}")
    status, second = passes.exchange(f"Bearer {first['refreshToken']}")
    assert status == 200
    assert first["accessToken"] != second["accessToken"]


def test_who_may_not_come_in() -> None:
    passes = Passes(Settings())
    passes.check(f"Bearer {TOKEN}")
    assert refusal(passes, "nobody") == "ERROR_UNAUTHORIZED"
    assert refusal(passes, API_KEY) == "ERROR_UNAUTHORIZED"
    assert passes.exchange("Bearer nobody")[0] == 401
    passes.revoked.add(TOKEN)
    assert refusal(passes, TOKEN) == "ERROR_UNAUTHORIZED"


def test_a_policy_may_bar_the_sign_in() -> None:
    status, body = Passes(Settings(is_sign_in_barred=True)).exchange(f"Bearer {API_KEY}")
    assert (status, body["message"]) == (403, "sign_in_policy_violation")
