"""The tree of errors: the class says who must act."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_MAX_QUOTED = 200


def quote(value: object) -> str:
    """Foreign text for a message: bounded, with control characters escaped."""
    text = value if isinstance(value, str) else _repr(value)
    text = _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text[: _MAX_QUOTED + 1])
    return f'"{text[:_MAX_QUOTED]}..."' if len(text) > _MAX_QUOTED else f'"{text}"'


def _repr(value: object) -> str:
    try:
        return repr(value)
    except RecursionError:  # JSON may be nested deeper than repr() supports
        return "..."


# Details of the error for a model that repeats tool calls without end; the Messages dialect sends them.
RUNAWAY: Mapping[str, Any] = {"details": {"tool_loop": "runaway"}}


def drop_tracebacks(error: BaseException) -> None:
    """Clears the tracebacks of a handled error and its causes, whose frames refer to the request and its body."""
    pending: list[BaseException | None] = [error]
    seen = set[int]()
    while pending:
        if (found := pending.pop()) is not None and id(found) not in seen:
            seen.add(id(found))
            found.__traceback__ = None
            pending += (found.__cause__, found.__context__)


class GatewayError(Exception):
    """status and code are for programs; message, where and hint for people.

    details: additional members of the error object on the wire, from the back end or required by a dialect.
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
        """Whether the model repeated tool calls without end."""
        return bool(self.details.get("details") == RUNAWAY["details"])

    def fresh(self) -> Self:
        """A copy without a traceback, for an error that is stored and raised later or more than once.

        Raising gives an error a traceback, whose frames refer to what stores the error. If that were the stored object itself, the
        frames, and the request's body in them, would be part of a reference cycle and stay until the garbage collector runs.
        """
        copy = type(self).__new__(type(self), *self.args)
        copy.__dict__.update(self.__dict__)
        copy.__cause__, copy.__suppress_context__ = self.__cause__, self.__suppress_context__
        return copy

    def sentence(self) -> str:
        """The complete message in one line: where, what and hint."""
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} {self.hint}" if self.hint else text


class BadRequest(GatewayError):
    """The client is wrong."""

    status = 400
    code = "invalid_request"


class UpstreamError(GatewayError):
    """The back end failed or refused the request; status and message are its own if it sent any.

    headers: those for the client (Retry-After, rate limits).
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

    def __str__(self) -> str:
        return self.sentence()


class InternalError(GatewayError):
    """We are wrong."""
