"""`python -m toolwire.cli` is the command line too."""

from __future__ import annotations

from toolwire.cli import main

if __name__ == "__main__":
    main()
