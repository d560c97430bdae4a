"""`toolwire reload`: makes a running gateway read its configuration again."""

from __future__ import annotations

import http.client
import json
import os
from typing import Annotated, Any

from cyclopts import Parameter

from ..config.file import Config, load, with_address
from ..errors import ConfigError, UpstreamError
from .clients.client import KEY
from .clients.gateway import connect, key_from_environment, path_at
from .serve import ConfigFlag, address_of

_SECONDS = 30.0
_MAX_BYTES = 65536


def reload(
    *,
    host: Annotated[str | None, Parameter(help="Address of the gateway, if not the configured one.")] = None,
    port: Annotated[int | None, Parameter(help="Port of the gateway, if not the configured one.")] = None,
    config: ConfigFlag = None,
) -> None:
    """Make a running gateway read its configuration again, without interrupting requests."""
    found = with_address(load(config, os.environ), host, port)
    address = address_of(found.server)
    status, answer = 0, ""
    for key in _keys(found):
        status, answer = _post(address, key)
        if status != 401:
            break
    if not status:
        raise UpstreamError(f"no gateway answers at {address}.", hint="Start it with `toolwire serve`.")
    if status in (401, 403):
        hint = f"Set {KEY} to one of the keys that it was started with, or send it SIGHUP."
        raise UpstreamError(f"the gateway at {address} refuses the key ({status}).", hint=hint)
    if status != 200:
        raise UpstreamError(f"the gateway at {address} continues as before: {answer}")
    print(f"the gateway at {address} has read its configuration again; {answer}")


def _keys(config: Config) -> list[str]:
    """TOOLWIRE_KEY, otherwise the configured keys: the running gateway may know only some of them."""
    try:
        given = key_from_environment().reveal()
    except ConfigError:
        given = ""
    return [given] if given else [key.reveal() for key in config.server.keys] or [""]


def _post(address: str, key: str) -> tuple[int, str]:
    """The status, 0 without an answer, and what has changed or the error message."""
    connection = connect(address, _SECONDS)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        connection.request("POST", path_at(address, "/reload"), body=b"", headers=headers)
        response = connection.getresponse()
        body: Any = json.loads(response.read(_MAX_BYTES))
        if response.status == 200:
            return 200, str(body["changes"])
        return response.status, str(body["error"]["message"])
    except (OSError, http.client.HTTPException):
        return 0, ""
    except (ValueError, KeyError, TypeError):
        return 502, "it sent no answer that can be read."
    finally:
        connection.close()
