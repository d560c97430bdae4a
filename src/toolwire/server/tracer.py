"""The trace of what goes to back ends and comes from them, set up as `log` under [server] says, and the recorder of [flows]."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ..config.file import Config, default_trace_path
from ..config.secret import Secret
from ..errors import ConfigError
from ..flows.cassette import CassetteWriter
from ..flows.disk import FlowFiles
from ..flows.recorder import FlowRecorder
from ..flows.redact import WireRedaction
from ..telemetry import wire_trace
from ..telemetry.redaction import Redaction, is_secret
from ..telemetry.wire_trace import LogFunction, TraceFile, WireTrace

_MEGABYTE = 1 << 20


class Tracer:
    """Nothing is traced before start(); stop() is safe to call twice."""

    def __init__(self, config: Config, say: LogFunction, environ: Mapping[str, str] = os.environ) -> None:
        self._config = config
        self._say = say
        self._environ = environ
        self._trace: WireTrace | None = None

    def start(self) -> None:
        if self._config.server.log not in ("debug", "trace"):
            return
        file = self._file() if self._config.server.log == "trace" else None
        self._trace = WireTrace(self._say, Redaction(known_secrets(self._config, self._environ)), file)
        wire_trace.install(self._trace)

    def stop(self) -> None:
        if self._trace is not None:
            wire_trace.uninstall(self._trace)
            self._trace.close()
            self._trace = None

    def _file(self) -> TraceFile | None:
        """If the trace cannot be written, the gateway starts without it and logs the reason."""
        server = self._config.server
        path = Path(server.trace_file) if server.trace_file else default_trace_path()
        try:
            file = TraceFile(path, server.trace_max_mb * _MEGABYTE)
        except OSError as error:
            why = error.strerror or "unknown reason"
            self._say(
                "warning",
                f"nothing is traced: the file {path} cannot be opened ({why}). Set trace_file to another one.",
            )
            return None
        self._say(
            "warning",
            f"what clients and models say is written to {path}; set log to another level when you have seen enough.",
        )
        return file


def recorder_for(
    config: Config, warn: Callable[[str], None], environ: Mapping[str, str] = os.environ
) -> FlowRecorder | None:
    """None where nothing is recorded. Raises ConfigError if its files cannot be written, or if traces need what is not recorded."""
    if config.telemetry.content and not (config.is_recorded and config.flows.bodies):
        raise ConfigError(
            "traces can contain messages only if requests are recorded with their bodies.",
            where="[telemetry] content",
            hint="Set enabled = true under [flows], and bodies to true.",
        )
    if not config.is_recorded:
        return None
    recorder = FlowRecorder(config.flows, WireRedaction(known_secrets(config, environ)))
    flows = config.flows
    if flows.path:
        recorder.store_in(FlowFiles(Path(flows.path), flows.disk_mb * _MEGABYTE, flows.max_age_days, warn))
    if config.flows.file:
        recorder.sink = CassetteWriter(Path(config.flows.file), warn).write
    return recorder


def known_secrets(config: Config, environ: Mapping[str, str]) -> Iterator[str]:
    """All known secrets: of the configuration, of headers, and of environment variables with such names."""
    yield from _secrets_in(config)
    for backend in config.backends:
        yield from (value for name, value in backend.headers.items() if is_secret(name))
    yield from (value for name, value in environ.items() if is_secret(name))


def _secrets_in(value: object) -> Iterator[str]:
    if isinstance(value, Secret):
        yield value.reveal()
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _secrets_in(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from (secret for item in value.values() for secret in _secrets_in(item))
    elif isinstance(value, list | tuple):
        yield from (secret for item in value for secret in _secrets_in(item))
