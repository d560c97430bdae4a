"""The gateway over HTTP."""

from .app import App
from .launch import run

__all__ = ["App", "run"]
