"""Call ids that a dialect accepts: legal ones stay, others are mapped, always to the same id, so that pairs keep together."""

from __future__ import annotations

import re
from hashlib import blake2b

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def fit_id(call_id: str, limit: int) -> str:
    """Letters, digits, _ and -, at most limit characters; what had to change carries a hash of the whole."""
    if len(call_id) <= limit and not _ILLEGAL.search(call_id):
        return call_id
    mark = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{_ILLEGAL.sub('_', call_id)[: limit - len(mark) - 1]}_{mark}"
