from __future__ import annotations

import json
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends
from toolwire.testing.background import BackgroundGateway

CONFIG = with_backends(Config(server=ServerConfig(host="0.0.0.0", port=1)), (BackendConfig(name="demo", kind="demo"),))


def test_it_answers_on_a_free_port_of_loopback_until_it_is_closed() -> None:
    with BackgroundGateway(CONFIG) as gateway:
        assert gateway.address.startswith("http://127.0.0.1:")
        with urlopen(f"{gateway.address}/v1/models", timeout=5) as reply:
            assert json.load(reply)["data"][0]["id"] == "demo/echo-tools"
    with pytest.raises(URLError):
        urlopen(f"{gateway.address}/healthz", timeout=5)
