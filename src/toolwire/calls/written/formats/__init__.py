"""The forms in which models write calls into text, one grammar each, in the order in which they are tried at the same opener."""

from . import dsml, glm, harmony, kimi, llama, mistral, pythonic, qwen
from .grammar import Grammar
from .hermes.malformed import SLIPPED, UNREAD
from .hermes.tagged import TOOL_CALL
from .hermes.variants import DRIFTED, INVOKE, LINE, WHOLE, WRAPPED

__all__ = ["GRAMMARS", "ONLY_INSTRUCTED"]

# Forms that are calls only if a prompt asks for calls in text.
ONLY_INSTRUCTED: tuple[Grammar, ...] = (DRIFTED, INVOKE, WRAPPED, SLIPPED, UNREAD)

GRAMMARS: tuple[Grammar, ...] = (
    TOOL_CALL,
    qwen.IN_TAG,
    glm.IN_TAG,
    *qwen.GRAMMARS,
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
