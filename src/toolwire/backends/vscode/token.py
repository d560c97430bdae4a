"""The token that a VS Code window needs to connect, in a file that only the user of this machine can read.

The gateway creates the file when it first starts, and the extension reads it. The environment variable TOOLWIRE_BRIDGE_TOKEN takes
precedence on both sides.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_state_path

from ...config.secret_file import MIN_LENGTH, is_strong, stored_secret
from ...errors import ConfigError

VARIABLE = "TOOLWIRE_BRIDGE_TOKEN"
FILE_NAME = "bridge-token"


def token_path() -> Path:
    """The default file: on Linux ~/.local/state/toolwire/bridge-token."""
    return user_state_path("toolwire", appauthor=False) / FILE_NAME


def bridge_token(environ: Mapping[str, str], path: Path | None = None) -> str:
    """The token, created if there is none. Raises ConfigError if it can be neither read nor created."""
    if given := environ.get(VARIABLE, "").strip():
        if not is_strong(given):
            message = (
                f"found an invalid token; expected {MIN_LENGTH} printable ASCII characters or more, without blanks."
            )
            raise ConfigError(message, where=VARIABLE)
        return given
    place = path or token_path()
    try:
        return stored_secret(place)
    except OSError as error:
        raise ConfigError(
            f"the token for VS Code windows cannot be stored: {error.strerror or 'unknown reason'}.",
            where=str(place),
            hint=f"Let this user write there, or set {VARIABLE} for the gateway and for VS Code.",
        ) from None


def is_token(given: str, token: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
