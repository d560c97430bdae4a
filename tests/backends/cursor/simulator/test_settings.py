from __future__ import annotations

from tests.backends.cursor.simulator.client import opening
from tests.backends.cursor.simulator.playing import played
from toolwire.backends.cursor.simulator import Pause, Say, Settings, play
from toolwire.backends.cursor.simulator.settings import MODELS


def test_every_model_may_be_known() -> None:
    first = opening(requested_model={"model_id": "anything"})
    for knows, code in ((True, None), (False, "not_found")):
        client, _ = played(first=first, tools=[], model=play(Say("ok")), settings=Settings(knows_every_model=knows))
        assert client.error.get("code") == code


def test_the_models_are_usable_as_they_are() -> None:
    for name in MODELS:
        client, _ = played(first=opening(requested_model={"model_id": name}), tools=[], model=play(Say("ok")))
        assert client.error == {}


def test_heartbeats_come_as_often_as_set() -> None:
    client, _ = played(model=play([Pause(0.2), Say("ok")]), settings=Settings(heartbeat=0.05))
    assert 1 <= client.kinds.count("heartbeat") <= 5
