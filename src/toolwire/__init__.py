"""toolwire: any agent client, any model back end, and every tool call arrives whole, valid and paired."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
