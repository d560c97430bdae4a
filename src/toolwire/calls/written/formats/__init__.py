"""The forms in which models write calls into text, one grammar each. The order is that in which they are tried at the same opener."""

from . import dsml, glm, harmony, kimi, llama, mistral, pythonic, qwen
from .base import Grammar
from .hermes.malformed import SLIPPED, UNREAD
from .hermes.tagged import TOOL_CALL, BehindTag
from .hermes.variants import DRIFTED, INVOKE, LINE, WHOLE, WRAPPED

__all__ = ["GRAMMARS", "ONLY_INSTRUCTED"]

# Forms that mean a call only where a prompt asked for written calls.
ONLY_INSTRUCTED: tuple[Grammar, ...] = (DRIFTED, INVOKE, WRAPPED, SLIPPED, UNREAD)

GRAMMARS: tuple[Grammar, ...] = (
    TOOL_CALL,
    BehindTag("qwen", qwen.in_tag),
    BehindTag("glm", glm.in_tag),
    *qwen.GRAMMARS,
    *glm.GRAMMARS,
    *mistral.GRAMMARS,
    *llama.GRAMMARS,
    *dsml.GRAMMARS,
    *harmony.GRAMMARS,
    *kimi.GRAMMARS,
    *pythonic.GRAMMARS,
    WHOLE,
    LINE,
    *ONLY_INSTRUCTED,
)
