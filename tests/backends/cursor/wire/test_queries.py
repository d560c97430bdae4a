"""Questions to a person: each kind that the schema has is declined, with its own number."""

from __future__ import annotations

import pytest

from tests.backends.cursor.wire.saying import read
from toolwire.backends.cursor.wire import agent
from toolwire.backends.cursor.wire.queries import NOBODY, REFUSALS, answer

ASKED = {field.name: field for field in agent.InteractionQuery.DESCRIPTOR.oneofs_by_name["query"].fields}
GIVEN = {field.name: field for field in agent.InteractionResponse.DESCRIPTOR.oneofs_by_name["result"].fields}


@pytest.mark.parametrize("member", ASKED)
def test_every_kind_of_the_schema_is_declined(member: str) -> None:
    query = agent.InteractionQuery(id=4)
    if ASKED[member].message_type is None:
        setattr(query, member, b"x")
    else:
        getattr(query, member).SetInParent()
    response = read(answer(query)).interaction_response
    name = response.WhichOneof("result")
    assert response.id == 4
    assert name is not None
    assert GIVEN[name].number == ASKED[member].number
    if member in REFUSALS:
        place = getattr(response, name)
        for step in REFUSALS[member].way:
            assert place.HasField(step)
            place = getattr(place, step)
        assert getattr(place, REFUSALS[member].words) == NOBODY


def test_a_query_that_nobody_knows_is_answered_all_the_same() -> None:
    response = read(answer(agent.InteractionQuery(id=6))).interaction_response
    assert response.id == 6
    assert response.WhichOneof("result") is None
