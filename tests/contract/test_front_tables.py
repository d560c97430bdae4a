"""The pages of the dialects that only clients use name every type and member of the official libraries.

A newer library that adds one fails here until its page says what becomes of it.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # the types of google-genai take a second to import

PAGES = Path(__file__).parents[2] / "docs" / "dialects"


def named_in(page: str) -> set[str]:
    text = (PAGES / page).read_text(encoding="utf-8")
    return {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+(?:\.\w+)*", quoted)}


def fields(*kinds: Any) -> set[str]:
    return {field.alias or name for kind in kinds for name, field in kind.model_fields.items()}


def test_ollama() -> None:
    from ollama import _types as types

    requests = fields(
        types.ChatRequest, types.GenerateRequest, types.EmbedRequest, types.EmbeddingsRequest, types.Options
    )
    message = types.Message
    parts = fields(message, message.ToolCall, message.ToolCall.Function, types.Tool, types.Tool.Function)
    answers = fields(types.ChatResponse, types.GenerateResponse, types.EmbedResponse, types.EmbeddingsResponse)
    models = fields(types.ListResponse.Model, types.ShowResponse, types.ModelDetails)
    assert requests | parts | answers | models <= named_in("ollama.md")


def test_interactions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.genai._gaos.types import interactions as types
        from google.genai._gaos.types.interactions import content, interactionsseevent, step, stepdeltadata, tool
    kinds = {
        *step._STEP_VARIANTS, *content._CONTENT_VARIANTS, *tool._TOOL_VARIANTS, *stepdeltadata._STEP_DELTA_DATA_VARIANTS,
        *interactionsseevent._INTERACTION_SSE_EVENT_VARIANTS,
    }  # fmt: skip
    statuses = set(types.Interaction.model_fields["status"].annotation.__args__[0].__args__)  # type: ignore[union-attr] # a union
    members = fields(
        types.CreateModelInteraction,
        types.CreateAgentInteraction,
        types.GenerationConfig,
        types.Interaction,
        types.Usage,
    )
    assert kinds | statuses | members <= named_in("interactions.md")
