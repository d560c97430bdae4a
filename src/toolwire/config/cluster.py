"""`[cluster]`: the secret that all gateways share, and addresses that a variable may name."""

from __future__ import annotations

from typing import Any

from ..errors import ConfigError
from .secret import Resolver, Secret
from .values import ClusterConfig

_SHORTEST = 16


def cluster_config(fields: dict[str, Any], resolver: Resolver) -> ClusterConfig:
    """resolver: the one that has read the secret. Raises ConfigError; where is a key."""
    secret: Secret = fields.get("secret") or Secret()
    if resolver.missing or len(secret.reveal()) < _SHORTEST:
        found = resolver.missing[0] if resolver.missing else f"found a secret of fewer than {_SHORTEST} characters"
        raise ConfigError(f"{found}; expected one that all gateways share.", where="secret")
    given = ClusterConfig(**fields)
    names = {}
    for key in ("host", "advertise"):  # "env:POD_IP", for example
        names[key] = resolver.resolve(getattr(given, key))
        if resolver.missing:
            raise ConfigError(f"{resolver.missing[0]}; expected an address.", where=key)
    return ClusterConfig(**fields | names)
