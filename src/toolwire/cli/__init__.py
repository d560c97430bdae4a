"""The command line."""

from __future__ import annotations

import os

try:
    from .entry import main
except KeyboardInterrupt:  # Ctrl-C before main() could handle it
    os._exit(130)

__all__ = ["main"]
