"""Spans reach a collector over OTLP, continue the client's trace, and never delay the gateway."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.server.harness import ask, gateway
from toolwire.config.file import BackendConfig, Config, TelemetryConfig
from toolwire.config.values import FlowsConfig
from toolwire.errors import ConfigError
from toolwire.server import App
from toolwire.telemetry.otel import SpanRecorder, span_recorder
from toolwire.telemetry.record import Record

TRACE = "0af7651916cd43dd8448eb211c80319c"
CONTENTS = {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions"}


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


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Its address, and the bodies that it gets."""
    bodies: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            bodies.append(gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *given: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def spans_in(bodies: list[bytes]) -> list[Any]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return [
        span
        for data in bodies
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@pytest.mark.slow
def test_a_gateway_sends_spans_to_its_collector() -> None:
    with collector() as (address, bodies):
        telemetry = TelemetryConfig(otlp_endpoint=address)
        config = Config(backends=(BackendConfig(name="demo", kind="demo"),), telemetry=telemetry)
        with gateway(config) as running:
            body = {"model": "demo/echo-tools", "messages": [{"role": "user", "content": "very secret words"}]}
            headers = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
            assert ask(running.port, "POST", "/v1/chat/completions", body, headers).status == 200
    assert [(span.name, span.trace_id.hex()) for span in spans_in(bodies)] == [("chat echo-tools", TRACE)]
    assert b"very secret words" not in b"".join(bodies)


WEATHER = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("is_stream", [False, True])
def test_content_is_exported_on_request_and_without_secrets(*, is_stream: bool) -> None:
    key = "sk-ant-REDACTED" + "0" * 40
    with collector() as (address, bodies):
        telemetry = TelemetryConfig(otlp_endpoint=address, content=True)
        config = Config(backends=(BackendConfig(name="demo", kind="demo"),), telemetry=telemetry)
        with gateway(config) as running:
            body = {
                "model": "demo/echo-tools",
                "max_tokens": 200,
                "stream": is_stream,
                "system": f"Use the key {key}.",
                "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
                "tools": [WEATHER],
            }
            assert ask(running.port, "POST", "/v1/messages", body).status == 200
    (span,) = spans_in(bodies)
    found = {item.key: json.loads(item.value.string_value) for item in span.attributes if item.key in CONTENTS}
    assert found["gen_ai.input.messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "What is the weather in Paris?"}]}
    ]
    (message,) = found["gen_ai.output.messages"]
    call = message["parts"][-1]
    assert (call["type"], call["name"], call["arguments"]) == ("tool_call", "get_weather", {"city": "Paris"})
    assert message["finish_reason"] == "tool_calls"
    assert [tool["name"] for tool in found["gen_ai.tool.definitions"]] == ["get_weather"]
    assert found["gen_ai.system_instructions"][0]["content"].startswith("Use the key")
    assert key.encode() not in b"".join(bodies)


def test_content_needs_recorded_bodies() -> None:
    telemetry = TelemetryConfig(otlp_endpoint="http://127.0.0.1:1", content=True)
    for flows in (FlowsConfig(enabled=False), FlowsConfig(bodies=False)):
        with pytest.raises(ConfigError, match="bodies"):
            App(Config(telemetry=telemetry, flows=flows))
