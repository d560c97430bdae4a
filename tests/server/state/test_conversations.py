"""Conversations: made, read and changed by clients, and grown by answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.state_harness import BACKENDS, ECHO, KEEPER, OTHER_KEY, Site, scripted, site, texts


@pytest.fixture(scope="module")
def place() -> Iterator[Site]:
    with site() as running:
        yield running


def made(place: Site, *words: str) -> str:
    items = [{"role": "user", "content": word} for word in words]
    answer = place.ask("POST", "/conversations", {"items": items, "metadata": {"topic": "x"}})
    assert answer.status == 200
    return str(answer.json["id"])


def listed(place: Site, name: str) -> list[str]:
    page = place.ask("GET", f"/conversations/{name}/items?order=asc&limit=100").json
    return [item["content"][0]["text"] for item in page["data"]]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("backend", [*BACKENDS, KEEPER])
def test_answers_are_added_to_it(place: Site, backend: str, stream: bool) -> None:
    name = made(place, "I am Ada.")
    first = place.respond(f"{backend}/m", scripted({"text": "Hello Ada."}, ECHO), conversation=name, stream=stream)
    assert first["conversation"] == {"id": name}
    second = place.respond(f"{backend}/m", "and now", conversation={"id": name}, stream=stream)
    assert [texts(second)[0], *texts(second)[-2:]] == ["I am Ada.", "Hello Ada.", "and now"]
    assert listed(place, name)[2:4] == ["Hello Ada.", "and now"]
    third = place.respond(f"{backend}/m", "from here", previous_response_id=first["id"], stream=stream)
    assert [texts(third)[0], *texts(third)[-2:]] == ["I am Ada.", "Hello Ada.", "from here"]


def test_it_is_read_and_changed(place: Site) -> None:
    name = made(place)
    path = f"/conversations/{name}"
    assert place.ask("GET", path).json["metadata"] == {"topic": "x"}
    assert place.ask("POST", path, {"metadata": {"topic": "y"}}).json["metadata"] == {"topic": "y"}
    added = place.ask("POST", f"{path}/items", {"items": [{"role": "user", "content": "one"}]}).json
    [item] = added["data"]
    assert (item["type"], item["status"], item["id"][:4]) == ("message", "completed", "msg_")
    assert place.ask("GET", f"{path}/items/{item['id']}").json == item
    assert place.ask("DELETE", f"{path}/items/{item['id']}").json["id"] == name
    place.refused(404, "GET", f"{path}/items/{item['id']}")
    place.refused(404, "DELETE", f"{path}/items/{item['id']}")
    assert place.ask("DELETE", path).json == {"id": name, "object": "conversation.deleted", "deleted": True}
    assert place.refused(404, "GET", path)["code"] == "conversation_not_found"


def test_an_empty_body_makes_an_empty_one(place: Site) -> None:
    name = place.ask("POST", "/conversations", b"").json["id"]
    page = place.ask("GET", f"/conversations/{name}/items").json
    assert page == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}


def test_another_key_finds_nothing(place: Site) -> None:
    name = made(place, "secret")
    [item] = place.ask("GET", f"/conversations/{name}/items").json["data"]
    path = f"/conversations/{name}"
    for key in (OTHER_KEY, ""):
        place.refused(404, "GET", path, key=key)
        place.refused(404, "POST", path, {"metadata": {}}, key)
        place.refused(404, "DELETE", path, key=key)
        place.refused(404, "GET", f"{path}/items", key=key)
        place.refused(404, "POST", f"{path}/items", {"items": []}, key)
        place.refused(404, "GET", f"{path}/items/{item['id']}", key=key)
        place.refused(404, "DELETE", f"{path}/items/{item['id']}", key=key)
        place.refused(404, "POST", "/responses", {"model": "scripted/m", "input": "x", "conversation": name}, key)
    assert listed(place, name) == ["secret"]


def test_what_was_deleted_is_in_no_later_history(place: Site) -> None:
    name = made(place, "secret")
    first = place.respond("scripted/m", "x", conversation=name)
    second = place.respond("scripted/m", "y", previous_response_id=first["id"])
    asked = {"model": "scripted/m", "input": scripted(ECHO), "previous_response_id": second["id"]}
    [secret] = [item for item in place.ask("GET", f"/conversations/{name}/items").json["data"] if "secret" in str(item)]
    place.ask("DELETE", f"/conversations/{name}/items/{secret['id']}")
    assert "secret" not in texts(place.ask("POST", "/responses", asked).json)
    place.ask("DELETE", f"/conversations/{name}")
    place.refused(400, "POST", "/responses", asked)


@pytest.mark.parametrize("kind", [{"type": "item_reference"}, {}])
def test_items_that_are_referred_to_are_added_themselves(place: Site, kind: dict[str, str]) -> None:
    [item] = place.respond("scripted/m", scripted({"text": "said before"}))["output"]
    reference = {**kind, "id": item["id"]}
    name = place.ask("POST", "/conversations", {"items": [reference]}).json["id"]
    assert place.ask("GET", f"/conversations/{name}/items").json["data"] == [item]
    assert texts(place.respond("scripted/m", scripted(ECHO), conversation=name))[0] == "said before"
    unknown = {**kind, "id": "msg_of_nobody"}
    assert place.refused(404, "POST", "/conversations", {"items": [unknown]})["code"] == "item_not_found"
    place.refused(404, "POST", f"/conversations/{name}/items", {"items": [unknown]})
    place.refused(404, "POST", "/conversations", {"items": [reference]}, OTHER_KEY)


@pytest.mark.parametrize("id", [5, 1.5, 10**40, [], {"a": 1}, True])
def test_an_id_that_is_no_text_harms_no_conversation(place: Site, id: Any) -> None:
    name = made(place)
    for item in ({"type": "unheard_of", "id": id}, {"id": id}, {"type": "item_reference", "id": id}):
        place.refused(400, "POST", f"/conversations/{name}/items", {"items": [item]})
        place.refused(400, "POST", "/conversations", {"items": [item]})
    given = [{"type": "unheard_of", "id": id}, {"type": ""}, {"role": "user", "content": "x"}]
    for _ in range(2):
        place.respond("scripted/m", given, conversation=name)
    listing = place.ask("GET", f"/conversations/{name}/items").json["data"]
    assert all(isinstance(item["id"], str) for item in listing)
    assert len(listing) == 8


def test_what_is_wrong_is_named(place: Site) -> None:
    name = made(place)
    place.refused(400, "POST", "/conversations", {"items": [{"role": "nobody", "content": "x"}]})
    place.refused(400, "POST", "/conversations", {"items": [{"role": "user", "content": "x"}] * 21})
    place.refused(400, "POST", "/conversations", {"metadata": {"a": 1}})
    place.refused(400, "POST", f"/conversations/{name}/items", {})
    place.refused(405, "GET", "/conversations")
    place.refused(405, "DELETE", f"/conversations/{name}/items")
    place.refused(404, "GET", f"/conversations/{name}/other")
    both = {"model": "scripted/m", "input": "x", "conversation": name, "previous_response_id": "resp_1"}
    place.refused(400, "POST", "/responses", both)
    answer = place.respond("scripted/m", "x")
    place.refused(404, "GET", f"/conversations/{answer['id']}")
    place.refused(404, "GET", f"/responses/{name}")
