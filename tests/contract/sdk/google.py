"""The types of google-genai. Its texts cause warnings when Python compiles the package for the first time, which are not ours."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google.genai.types import (
        Candidate,
        Content,
        FunctionDeclaration,
        GenerateContentResponse,
        GenerateContentResponseUsageMetadata,
        GenerationConfig,
        Part,
        Tool,
        ToolConfig,
    )

__all__ = [
    "Candidate",
    "Content",
    "FunctionDeclaration",
    "GenerateContentResponse",
    "GenerateContentResponseUsageMetadata",
    "GenerationConfig",
    "Part",
    "Tool",
    "ToolConfig",
]
