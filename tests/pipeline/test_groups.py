"""Groups of models: order, weights, circuits and stickiness."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import pytest

from toolwire.config.values import ModelGroup
from toolwire.errors import BadRequest, GatewayError, UpstreamError
from toolwire.pipeline.groups import ModelGroups
from toolwire.types import Message, Request, Text

LISTED = ModelGroup(models=("a/x", "b/y", "c/z"))
BUSY = UpstreamError("busy", status=503)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def request(text: str) -> Request:
    return Request(model="fast", messages=(Message(role="user", parts=(Text(text=text),)),))


def candidates(groups: ModelGroups, request: Request, owner: str) -> list[str]:
    return groups.candidates(groups.groups["fast"], request, owner)


def attempt(groups: ModelGroups, model: str, error: BaseException | None = None) -> None:
    """One request to this model."""
    group = groups.groups["fast"]
    if error is None:
        with groups.attempt(group, model):
            pass
    else:
        with pytest.raises(type(error)), groups.attempt(group, model):
            raise error


def test_a_conversation_stays_with_the_model_that_answered_it() -> None:
    groups = ModelGroups({"fast": LISTED}, clock=Clock())
    assert candidates(groups, request("one"), "") == ["a/x", "b/y", "c/z"]
    groups.succeeded("b/y", request("one"), "")
    assert candidates(groups, request("one"), "") == ["b/y", "a/x", "c/z"]
    assert candidates(groups, request("two"), "") == ["a/x", "b/y", "c/z"]
    assert candidates(groups, request("one"), "another key") == ["a/x", "b/y", "c/z"]


def test_weights_share_conversations_and_all_processes_agree() -> None:
    group = ModelGroup(models=("a/x", "b/y", "c/z"), weights=(6, 3, 0))
    groups, others = ModelGroups({"fast": group}), ModelGroups({"fast": group})
    chosen = Counter(candidates(groups, request(f"conversation {number}"), "")[0] for number in range(3000))
    assert 1900 <= chosen["a/x"] <= 2100
    assert chosen["a/x"] + chosen["b/y"] == 3000
    for number in range(100):
        one = request(f"conversation {number}")
        assert candidates(groups, one, "") == candidates(others, one, "")
        assert candidates(groups, one, "")[-1] == "c/z"  # weight 0: only if the others fail


def test_new_conversations_prefer_the_model_whose_calls_are_better() -> None:
    measured = {"a/x": 0.9, "b/y": 0.98, "c/z": 0.981}
    groups = ModelGroups({"fast": ModelGroup(models=LISTED.models, order="quality")}, quality=measured.get)
    assert candidates(groups, request("one"), "") == ["b/y", "c/z", "a/x"]  # b/y and c/z are equal, to a percent
    groups.succeeded("a/x", request("one"), "")
    assert candidates(groups, request("one"), "")[0] == "a/x"
    del measured["a/x"]
    assert candidates(groups, request("two"), "")[0] == "a/x"  # nothing is known of it, so it is tried


def test_a_back_end_that_keeps_failing_is_tried_last_until_it_is_probed() -> None:
    clock = Clock()
    groups = ModelGroups({"fast": ModelGroup(models=("a/x", "b/y", "a/z"))}, clock=clock)
    attempt(groups, "a/x", BUSY)
    attempt(groups, "a/z", BUSY)
    assert candidates(groups, request("one"), "")[0] == "a/x"
    attempt(groups, "a/x", BUSY)
    assert candidates(groups, request("one"), "") == [
        "b/y",
        "a/x",
        "a/z",
    ]  # one circuit for both models of the back end
    clock.now += 31
    assert candidates(groups, request("one"), "")[0] == "a/x"
    attempt(groups, "a/x", BUSY)  # the probe failed
    assert candidates(groups, request("one"), "")[0] == "b/y"
    clock.now += 31
    attempt(groups, "a/x")
    attempt(groups, "a/x", BUSY)
    assert candidates(groups, request("two"), "")[0] == "a/x"


@pytest.mark.parametrize("end", [None, BUSY, KeyboardInterrupt(), BadRequest("no"), UpstreamError("no", status=400)])
def test_only_one_request_probes_a_back_end(end: BaseException | None) -> None:
    clock = Clock()
    groups = ModelGroups({"fast": LISTED}, clock=clock)
    for _ in range(3):
        attempt(groups, "a/x", BUSY)
    clock.now += 31
    assert candidates(groups, request("one"), "")[0] == "a/x"
    seen = False
    with suppress(BaseException), groups.attempt(LISTED, "a/x"):
        assert candidates(groups, request("two"), "")[0] == "b/y"
        seen = True
        if end is not None:
            raise end
    assert seen
    assert (candidates(groups, request("two"), "")[0] == "a/x") is (end is not BUSY)


def test_a_failure_that_is_no_reason_to_fall_back_does_not_count() -> None:
    group = ModelGroup(models=("a/x", "b/y"), fallback_on=("connect",))
    groups = ModelGroups({"fast": group}, clock=Clock())
    errors: list[GatewayError] = [BUSY, UpstreamError("no", status=429), BadRequest("no")]
    for error in errors * 2:
        attempt(groups, "a/x", error)
    assert candidates(groups, request("one"), "")[0] == "a/x"
