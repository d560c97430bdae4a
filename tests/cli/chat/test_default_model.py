"""Which model answers where nobody said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.chat.stage import play
from tests.cli.listener import http, listening
from toolwire.cli.chat.default_model import DEMO, check_model, first_model, first_model_at
from toolwire.config.file import BackendConfig, Config, ServerConfig, with_backends
from toolwire.errors import BadRequest

pytestmark = pytest.mark.slow

LISTED = BackendConfig(name="listed", kind="openai-chat", models=("text-embedding-9", "talker"))
OTHER = BackendConfig(name="other", kind="openai-chat", models=("words",))
KEYLESS = BackendConfig(name="keyless", kind="anthropic", missing="KEY is not set")


def first(*backends: BackendConfig, default: str = "") -> str:
    config = with_backends(Config(server=ServerConfig(default=default)), backends)
    return asyncio.run(first_model(config))


def test_the_first_that_can_talk() -> None:
    assert first(KEYLESS, LISTED, OTHER) == "listed/talker"
    assert first(KEYLESS, LISTED, OTHER, default="other") == "other/words"


def test_the_demo_where_there_is_no_other() -> None:
    assert first() == DEMO
    assert first(KEYLESS) == DEMO


def test_a_list_is_asked_for(tmp_path: Path) -> None:
    assert asyncio.run(first_model(play(tmp_path, [{"text": "a"}]))) == "play/scripted"


def test_a_gateway_elsewhere_says_what_it_has() -> None:
    async def main() -> None:
        body = b'{"data": [{"id": "demo/echo-tools"}, {"id": "there/one"}]}'
        async with listening(http(body)) as listener:
            url = f"http://127.0.0.1:{listener.port}/v1"
            assert await asyncio.to_thread(first_model_at, url, "") == "there/one"
        assert await asyncio.to_thread(first_model_at, url, "") == DEMO

    asyncio.run(main())


def test_a_name_is_checked_with_the_lists_of_the_back_ends(tmp_path: Path) -> None:
    config = play(tmp_path, [{"text": "a"}])
    config = replace(config, server=replace(config.server, default=""))
    asyncio.run(check_model(config, "play/anything"))
    asyncio.run(check_model(config, "echo-tools"))
    with pytest.raises(BadRequest, match="nobody"):
        asyncio.run(check_model(config, "nobody"))
