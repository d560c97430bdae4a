"""Exports spans to a collector with OpenTelemetry's SDK, an extra.

The SDK's own thread sends them in batches. Its queue is bounded: if the collector does not accept them, spans are dropped, and no request
waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from ..errors import ConfigError
from ..installation import install_command
from .record import Record
from .spans import SpanValue, spans_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

_SECONDS = 5.0  # for one export, and for the last one at shutdown


Content: TypeAlias = Callable[[Record], Mapping[str, Any]]  # attributes with the messages of a request


class SpanRecorder:
    """kinds: of the back ends by name. sample: the share of traces that are exported, unless the client decides."""

    def __init__(
        self,
        exporter: SpanExporter,
        kinds: Mapping[str, str],
        *,
        service: str = "toolwire",
        sample: float = 1.0,
        content: Content | None = None,
    ) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        self._kinds = kinds
        self._content = content
        number = version("toolwire")
        resource = Resource.create({"service.name": service, "service.version": number})
        self._provider: TracerProvider = TracerProvider(
            resource=resource, sampler=ParentBased(TraceIdRatioBased(sample)), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("toolwire", number)
        self._offset = time.time() - time.monotonic()

    def closed(self, record: Record) -> None:
        """Records of requests that named no model, such as refused ones without a body, have no span."""
        if not record.model and not record.backend:
            return
        first, *tools = spans_of(record, self._kinds.get(record.backend, ""))
        if self._content is not None:
            first = replace(first, attributes={**first.attributes, **self._content(record)})
        context = self._record(first, _parent_of(record.traceparent))
        for span in tools:
            self._record(span, context)

    async def stop(self) -> None:
        """Sends what waits, if the collector accepts it in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(self._provider.shutdown), 2 * _SECONDS)

    def _record(self, value: SpanValue, context: Any) -> Any:
        """The context for spans below it."""
        from opentelemetry import trace

        kinds = {"client": trace.SpanKind.CLIENT, "internal": trace.SpanKind.INTERNAL}
        span = self._tracer.start_span(
            value.name,
            context,
            kinds[value.kind],
            dict(value.attributes),
            start_time=self._nanoseconds(value.start),
        )
        for event in value.events:
            span.add_event(event.name, dict(event.attributes), self._nanoseconds(event.time))
        if value.error:
            span.set_status(trace.Status(trace.StatusCode.ERROR, value.error))
        span.end(self._nanoseconds(value.end))
        return trace.set_span_in_context(span)

    def _nanoseconds(self, monotonic: float) -> int:
        return int((monotonic + self._offset) * 1e9)


def span_recorder(
    endpoint: str, kinds: Mapping[str, str], service: str, sample: float, content: Content | None = None
) -> SpanRecorder | None:
    """None without an endpoint. Raises ConfigError if the extra is missing."""
    if not endpoint:
        return None
    try:
        return SpanRecorder(_exporter(endpoint), kinds, service=service, sample=sample, content=content)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        message = "traces need OpenTelemetry's SDK, which is not installed."
        hint = f"Install it: {install_command('otel')}"
        raise ConfigError(message, where="[telemetry] otlp_endpoint", hint=hint) from None


def _exporter(endpoint: str) -> SpanExporter:
    """Headers and certificates come from the standard variables, OTEL_EXPORTER_OTLP_HEADERS and others."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    url = endpoint.rstrip("/")
    return OTLPSpanExporter(endpoint=url if url.endswith("/v1/traces") else f"{url}/v1/traces", timeout=_SECONDS)


def _parent_of(traceparent: str) -> Any:
    """The client's span, so that its trace continues here."""
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})
