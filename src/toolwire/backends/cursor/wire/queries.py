"""Cursor: what the server asks the person in front of the client. Nobody is there, so each is declined in its own words.

A question that is left open stops the turn for good.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from . import agent

NOBODY = "Nobody can be asked here: this client answers for itself and approves nothing. Go on without it, with the tools you have."


class Refusal(Struct, frozen=True):
    """The member of the response, the way to the refusal in it, and the member there that takes the words."""

    member: str
    way: tuple[str, ...] = ("rejected",)
    words: str = "reason"


REFUSALS: dict[str, Refusal] = {
    "web_search_request_query": Refusal("web_search_request_response"),
    "ask_question_interaction_query": Refusal("ask_question_interaction_response", ("result", "rejected")),
    "switch_mode_request_query": Refusal("switch_mode_request_response"),
    "create_plan_request_query": Refusal("create_plan_request_response", ("result", "error"), "error"),
    "web_fetch_request_query": Refusal("web_fetch_request_response"),
    "pr_management_request_query": Refusal("pr_management_result"),
    "mcp_auth_request_query": Refusal("mcp_auth_request_response"),
    "generate_image_request_query": Refusal("generate_image_request_response"),
    "replace_env_args": Refusal("replace_env_result", ("failure",), "error_message"),
    "connect_scm_request_query": Refusal("connect_scm_request_response"),
}

# Whose messages are not modelled. The first two have the form of a web search's, for the third an empty result is one.
_OPAQUE = {
    "exa_search_request_query": "exa_search_request_response",
    "exa_fetch_request_query": "exa_fetch_request_response",
    "setup_vm_environment_args": "setup_vm_environment_result",
}


def answer(query: agent.InteractionQuery, why: str = NOBODY) -> bytes:
    """One response, with the number of the query; of a kind that nobody knows it has nothing but that."""
    response = agent.InteractionResponse(id=query.id)
    member = query.WhichOneof("query") or ""
    if (refusal := REFUSALS.get(member)) is not None:
        _refuse(response, refusal, why)
    elif member in _OPAQUE:
        rejected = agent.WebSearchRequestResponse_Rejected(reason=why)
        body = (
            b"" if member.startswith("setup") else agent.WebSearchRequestResponse(rejected=rejected).SerializeToString()
        )
        setattr(response, _OPAQUE[member], body)
    return agent.AgentClientMessage(interaction_response=response).SerializeToString()


def _refuse(response: agent.InteractionResponse, refusal: Refusal, why: str) -> None:
    place: Any = getattr(response, refusal.member)
    for step in refusal.way:
        place = getattr(place, step)
    place.SetInParent()
    setattr(place, refusal.words, why)
