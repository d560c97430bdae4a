"""One error tree: who must act decides the class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_QUOTED = 200


def quote(value: object) -> str:
    """Foreign text, made safe to stand in a message: bounded, control characters escaped."""
    text = value if isinstance(value, str) else _shown(value)
    text = _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text[: _QUOTED + 1])
    return f'"{text[:_QUOTED]}..."' if len(text) > _QUOTED else f'"{text}"'


def _shown(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:  # as deep as JSON may be is deeper than this can go
        return "..."


# Details of an error for a model that kept calling tools until its answer was ended; Messages carries them on the wire.
RUNAWAY: Mapping[str, Any] = {"details": {"tool_loop": "runaway"}}


def drop_tracebacks(error: BaseException) -> None:
    """Of an error that has been handled, and of those that led to it: their frames hold the request and its body."""
    pending: list[BaseException | None] = [error]
    seen = set[int]()
    while pending:
        if (found := pending.pop()) is not None and id(found) not in seen:
            seen.add(id(found))
            found.__traceback__ = None
            pending += (found.__cause__, found.__context__)


class GatewayError(Exception):
    """status and code tell a program what happened; message, where and hint tell a person.

    details are members for the error object on the wire: the back end's own, or what a client's dialect expects there.
    """

    status = 500
    code = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        where: str = "",
        hint: str = "",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.details = dict(details or {})
        if status is not None:
            self.status = status
        if code is not None:
            self.code = code

    @property
    def is_runaway(self) -> bool:
        """The model kept calling tools until its answer was ended."""
        return bool(self.details.get("details") == RUNAWAY["details"])

    def fresh(self) -> Self:
        """A copy without a traceback, for whoever stores an error and raises it later or more than once.

        Raising gives an error a traceback, whose frames refer to what stores the error. If that were the stored object itself, the
        frames, and the request's body in them, would be part of a reference cycle and stay until the garbage collector runs.
        """
        copy = type(self).__new__(type(self), *self.args)
        copy.__dict__.update(self.__dict__)
        copy.__cause__, copy.__suppress_context__ = self.__cause__, self.__suppress_context__
        return copy

    def sentence(self) -> str:
        """Everything a person needs, in one line."""
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} {self.hint}" if self.hint else text


class BadRequest(GatewayError):
    """The client is wrong."""

    status = 400
    code = "invalid_request"


class UpstreamError(GatewayError):
    """The back end is wrong, or says that we are: status and words are its own where it gave any.

    headers are those a client may want (Retry-After, rate limits).
    """

    status = 502
    code = "upstream_error"

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        where: str = "",
        hint: str = "",
        headers: Mapping[str, str] | None = None,
        details: Mapping[str, Any] | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, status=status, code=code, where=where, hint=hint, details=details)
        self.headers = dict(headers or {})
        self.retryable = retryable


class ConfigError(GatewayError):
    """The owner of this installation is wrong; where is file, line and key."""

    status = 500
    code = "config_error"


class InternalError(GatewayError):
    """We are wrong."""
