"""Tests of agents without a model: a gateway that records the answers of a model once, and replays them in later runs."""

from __future__ import annotations

from .gateway import CassetteGateway

__all__ = ["CassetteGateway"]
