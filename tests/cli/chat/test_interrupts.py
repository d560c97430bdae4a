"""Ctrl-C is a message or an exception, and afterwards what it was before."""

from __future__ import annotations

import signal

import pytest

from toolwire.cli.chat import interrupts

pytestmark = pytest.mark.slow


def test_a_message_while_an_answer_is_under_way() -> None:
    told = list[str]()
    before = signal.getsignal(signal.SIGINT)
    with interrupts.told(lambda: told.append("stop")):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert told == ["stop", "stop"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_exception_while_a_person_types() -> None:
    with interrupts.told(lambda: None):
        inside = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts.raised():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is inside
