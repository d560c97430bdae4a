"""The models that Codex knows, without the tools that they bring along and no setting takes away.

Since some version the models of Codex's own list run their tools from code that they write, and a client's tools are only words in
the description of that. The program prints its list; what we write of it is the same but for the members that say so.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...subprocesses import signal_group, start
from ...types import JsonObject
from ...wire.exact_json import encode, object_of

_SECONDS = 10.0
# As a model has them that Codex does not know.
_PLAIN: JsonObject = {
    "tool_mode": None,
    "multi_agent_version": None,
    "apply_patch_tool_type": None,
    "use_responses_lite": False,
    "experimental_supported_tools": [],
}


async def catalogue_of(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> bytes:
    """The text of a model catalogue; b"" where the version prints none (0.89), and then needs none either."""
    if "app-server" not in command:
        return b""
    listing = [*command[: command.index("app-server")], "debug", "models"]
    try:
        nothing = asyncio.subprocess.DEVNULL
        process = await start(*listing, stdin=nothing, stderr=nothing, folder=folder, environment=environment)
    except OSError:
        return b""  # whoever starts it in earnest says why
    try:
        async with asyncio.timeout(_SECONDS):
            printed, _ = await process.communicate()
    except TimeoutError:
        return b""
    finally:
        signal_group(process, signal.SIGKILL)
        await process.wait()
    return plain(printed)


def plain(printed: bytes) -> bytes:
    """b"" where it is no catalogue."""
    known = object_of(printed.decode("utf-8", "replace"))
    models = known.get("models") if known is not None else None
    if known is None or not isinstance(models, list) or not models:
        return b""
    changed = [
        model | {name: value for name, value in _PLAIN.items() if name in model}
        for model in models
        if isinstance(model, dict)
    ]
    return encode({**known, "models": changed})
