"""Stages with a cassette: a gateway that records a session with the scripted model, and one that replays it without a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.free_port import free_port
from tests.programs.stage import Stage, gateway_config, serving, upstream_config


@contextmanager
def recording(kind: str, folder: Path, cassette: Path, *, client: str = "") -> Iterator[Stage]:
    """kind: of the upstream. client: the dialect in which the session is recorded; "" is that of the program.

    With a client dialect there are two gateways: the program's, and behind it the one that records.
    """
    upstream, recorder = free_port(), free_port()
    (folder / "upstream.toml").write_text(upstream_config(upstream), encoding="utf-8")
    (folder / "recorder.toml").write_text(gateway_config(recorder, upstream, kind), encoding="utf-8")
    play = [sys.executable, "-m", "tests.programs.upstream", str(folder / "upstream.toml"), str(folder / "journal")]
    record = _command("record", str(cassette), "--config", str(folder / "recorder.toml"))
    with serving(play, upstream, folder / "upstream.log"), serving(record, recorder, folder / "gateway.log"):
        if not client:
            yield Stage(kind, f"http://127.0.0.1:{recorder}", folder)
            return
        front = free_port()
        path = "" if client == "anthropic" else "/v1"
        text = f'[server]\nport = {front}\n[backends.recorder]\nkind = "{client}"\nbase_url = "http://127.0.0.1:{recorder}{path}"\n'
        (folder / "front.toml").write_text(text, encoding="utf-8")
        with serving(_command("serve", "--config", str(folder / "front.toml")), front, folder / "front.log"):
            yield Stage(kind, f"http://127.0.0.1:{front}", folder)


@contextmanager
def replaying(folder: Path, cassette: Path, *options: str) -> Iterator[Stage]:
    port = free_port()
    with serving(_command("replay", str(cassette), "--port", str(port), *options), port, folder / "gateway.log"):
        yield Stage("replay", f"http://127.0.0.1:{port}", folder)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "toolwire", *words]
