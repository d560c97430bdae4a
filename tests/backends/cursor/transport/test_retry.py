from __future__ import annotations

import asyncio

import pytest

from toolwire.backends.cursor.transport.retry import Tries
from toolwire.backends.cursor.transport.service import Service, Way
from toolwire.backends.http.transport import Transport
from toolwire.config.file import BackendConfig
from toolwire.config.secret import Secret
from toolwire.errors import UpstreamError

pytestmark = pytest.mark.slow

WAY = Way(Secret("ey.a.b"), True)
PASSING = UpstreamError("cut", retryable=True)
REFUSED = UpstreamError("who?", status=401)
OLD = UpstreamError("HTTP/1.1 only", code="http2_required")


def tries(retries: int = 2, *, key: str = "a_key", until: float = 100.0) -> Tries:
    async def made() -> Tries:
        config = BackendConfig(name="c", kind="cursor", base_url="http://127.0.0.1:1", key=Secret(key))
        return Tries(Service(config, Transport(environ={})), retries, until)

    return asyncio.run(made())


def test_what_may_pass_is_tried_again_so_often_with_longer_pauses() -> None:
    some = tries(3)
    pauses = [some.pause(PASSING, WAY, 0.0) for _ in range(4)]
    assert pauses[3] is None
    given = [pause for pause in pauses if pause is not None]
    assert len(given) == 3
    assert all(0.2 * 2**count <= pause <= 0.3 * 2**count for count, pause in enumerate(given))


def test_what_will_not_pass_is_told_at_once() -> None:
    assert tries().pause(UpstreamError("no", status=400), WAY, 0.0) is None
    assert tries(0).pause(PASSING, WAY, 0.0) is None


@pytest.mark.parametrize(("wait", "pause"), [("1", 1.0), ("2", 2.0), ("3", None), ("60", None)])
def test_the_server_says_how_long_and_a_long_pause_is_the_clients(wait: str, pause: float | None) -> None:
    assert tries().pause(UpstreamError("busy", headers={"retry-after": wait}, retryable=True), WAY, 0.0) == pause


def test_no_try_begins_when_the_time_is_over() -> None:
    assert tries(until=10.0).pause(PASSING, WAY, 9.0) is not None
    assert tries(until=10.0).pause(PASSING, WAY, 9.9) is None


def test_a_token_is_renewed_once_and_only_where_there_was_one_from_a_key() -> None:
    exchanged = tries()
    assert [exchanged.pause(REFUSED, WAY, 0.0), exchanged.pause(REFUSED, WAY, 0.0)] == [0.0, None]
    assert tries(key="ey.a.b").pause(REFUSED, WAY, 0.0) is None
    assert tries().pause(REFUSED, None, 0.0) is None


def test_the_other_transport_is_tried_at_once_and_does_not_count() -> None:
    some = tries(0)
    assert some.pause(OLD, WAY, 0.0) == 0.0
    assert some.pause(OLD, Way(WAY.token, False), 0.0) is None
