from __future__ import annotations

from toolwire.backends.cursor.transport.channel import Gone
from toolwire.errors import UpstreamError


def test_whoever_catches_it_has_the_error_and_the_sentence() -> None:
    error = UpstreamError("the service left.", status=502, retryable=True)
    gone = Gone(error)
    assert gone.error is error
    assert str(gone) == "the service left."
