"""New ids for calls, responses, items and requests."""

from __future__ import annotations

import random


def new_id(prefix: str) -> str:
    """Unique, not secret. Python seeds this generator in every process."""
    return f"{prefix}{random.getrandbits(96):024x}"
