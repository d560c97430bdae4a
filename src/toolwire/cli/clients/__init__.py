"""The clients that can be connected: one table, read by `toolwire connect`, the README and the documents."""

from __future__ import annotations

from .client import Client
from .libraries import LIBRARIES
from .programs import PROGRAMS

CLIENTS: dict[str, Client] = {client.name: client for client in (*PROGRAMS, *LIBRARIES)}

__all__ = ["CLIENTS", "Client"]
