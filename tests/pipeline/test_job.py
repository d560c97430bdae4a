from __future__ import annotations

from msgspec.structs import replace

from toolwire.config.policy import Corrections, Policy
from toolwire.types import Message, Request, Sampling, Text

from .jobs import job_of

REQUEST = Request(
    model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),), origin="chat", wire=b'{"model": "m"}'
)


def test_a_change_drops_the_clients_bytes_and_keeps_the_first_reason() -> None:
    job = job_of(REQUEST)
    assert job.stale == ""
    job.change(replace(REQUEST, messages=()), "first")
    job.change(replace(job.request, model="n"), "second")
    assert (job.request.wire, job.request.model, job.request.messages, job.stale) == (b"", "n", (), "first")
    assert job.received is REQUEST


def test_only_a_single_choice_at_guard_retry_is_corrected() -> None:
    policy = Policy(terms=Corrections(corrections=3))
    assert job_of(REQUEST, guard="retry", policy=policy).terms.corrections == 3
    assert job_of(REQUEST, guard="repair", policy=policy).terms.corrections == 0
    two = replace(REQUEST, sampling=Sampling(choices=2))
    assert job_of(two, guard="retry", policy=policy).terms.corrections == 0
