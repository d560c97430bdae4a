"""Spans reach a collector over OTLP, continue the client's trace, and never delay the gateway."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.server.harness import ask, gateway
from toolwire.config.file import BackendConfig, Config, TelemetryConfig
from toolwire.telemetry.otel import SpanRecorder, span_recorder
from toolwire.telemetry.record import Record

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_spans_have_the_times_of_the_record_and_the_parent_of_the_client() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    recorder = SpanRecorder(exporter, {"b": "openai-chat"}, service="mine")
    now = time.monotonic()
    recorder.closed(
        Record(
            model="m",
            backend="b",
            started=now - 2,
            ended=now,
            outcome="error",
            error="cut",
            traceparent=f"00-{TRACE}-b7ad6b7169203331-01",
        )
    )
    recorder.closed(Record(started=now, ended=now))
    asyncio.run(recorder.stop())
    (span,) = exporter.get_finished_spans()
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert span.end_time - span.start_time == pytest.approx(2e9, rel=1e-3)
    assert abs(span.end_time / 1e9 - time.time()) < 5
    assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", "cut")
    assert span.resource.attributes["service.name"] == "mine"


def test_without_an_endpoint_nothing_is_recorded() -> None:
    assert span_recorder("", {}, "toolwire", 1.0) is None


@pytest.mark.slow
def test_a_gateway_sends_spans_to_its_collector() -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                data = gzip.decompress(data)
            bodies.append(data)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *given: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        telemetry = TelemetryConfig(otlp_endpoint=f"http://127.0.0.1:{server.server_port}")
        config = Config(backends=(BackendConfig(name="demo", kind="demo"),), telemetry=telemetry)
        with gateway(config) as running:
            body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "very secret words"}]}
            headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
            assert ask(running.port, "POST", "/v1/chat/completions", body, headers).status == 200
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    spans = [
        span
        for data in bodies
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert [(span.name, span.trace_id.hex()) for span in spans] == [("chat echo-tools", TRACE)]
    assert b"very secret words" not in b"".join(bodies)
