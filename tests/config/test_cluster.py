"""`[cluster]`: a secret is required, and addresses may come from variables."""

from __future__ import annotations

import pytest

from toolwire.config.cluster import cluster_config
from toolwire.config.secret import Resolver, Secret
from toolwire.config.values import ClusterConfig
from toolwire.errors import ConfigError

SECRET = Secret("0123456789abcdef")


def test_addresses_may_be_variables(tmp_path) -> None:  # type: ignore[no-untyped-def]
    resolver = Resolver({"POD_IP": "10.0.0.7"}, tmp_path)
    found = cluster_config({"secret": SECRET, "host": "env:POD_IP"}, resolver)
    assert found == ClusterConfig(secret=SECRET, host="10.0.0.7")
    assert cluster_config({"secret": SECRET}, resolver).host == "127.0.0.1"


@pytest.mark.parametrize(
    ("fields", "where"),
    [({}, "secret"), ({"secret": Secret("short")}, "secret"), ({"secret": SECRET, "advertise": "env:NO"}, "advertise")],
)
def test_the_wrong_key_is_named(tmp_path, fields: dict[str, object], where: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError) as caught:
        cluster_config(fields, Resolver({}, tmp_path))
    assert caught.value.where == where
