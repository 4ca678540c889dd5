"""What telemetry tells of nights and readers, through the SDK's exporters."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from scan_pipeline.core.errors import ConfigurationError, GateClosedError
from scan_pipeline.simulator.faults import Failing, PageReplaced
from scan_pipeline.simulator.principals import AUDITOR_TOKEN
from scan_pipeline.simulator.script import Script
from scan_pipeline.stages.run import run_scan
from scan_pipeline.stages.telemetry import nights
from scan_pipeline.stages.telemetry.instruments import Telemetry
from scan_pipeline.stages.telemetry.nights import tell_nights, watched
from scan_pipeline.stages.telemetry.setup import VARIABLE, telemetry_of, tell_blocked
from scan_pipeline_tests.conftest import Bench

NOTHING = ("customer-", "cursor", AUDITOR_TOKEN, "auditor", "?")


class Collected:
    """Instruments whose signals stay in memory."""

    def __init__(self) -> None:
        self.spans, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        meters = MeterProvider(metric_readers=[self.reader])
        self.telemetry = Telemetry(tracers=tracers, meters=meters)

    def metrics(self) -> dict[str, Any]:
        """Each metric's value by its name: a sum's, a gauge's, or a histogram's sum."""
        data = json.loads(self.reader.get_metrics_data().to_json())
        (scope,) = data["resource_metrics"][0]["scope_metrics"]
        return {each["name"]: _value(each["data"]["data_points"]) for each in scope["metrics"]}


def _value(points: list[Mapping[str, Any]]) -> float:
    return sum(each["value"] if "value" in each else each["sum"] for each in points)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Collected:
    found = Collected()
    monkeypatch.setattr(nights, "telemetry_of", lambda _: found.telemetry)
    return found


def test_a_night_is_a_trace_and_its_figures(bench: Bench, collected: Collected) -> None:
    """A wait of two seconds, a retry, then a failed night: as spans, and as sums."""
    faults = (
        Failing(page=2, status=429, retry_after_s=2, last_attempt=1),
        PageReplaced(page=2, by=1, first_attempt=3),
    )
    place = bench.workspace(bench.registry(size=300, script=Script(faults=faults)))
    scan = bench.scan({"operation": {"recheck_pages": 0}})
    warned = list[str]()
    told = list[Any]()
    receipts = []
    for _ in range(2):
        progress = watched(told.append, scan=scan.name, workspace=place)
        night = run_scan(scan, workspace=place, progress=progress)
        tell_nights([night.stored], workspace=place, warn=warned.append)
        receipts.append(night.stored.receipt)

    assert warned == []
    good, bad = receipts
    assert (good.accepted, bad.accepted) == (True, False)
    spans = collected.spans.get_finished_spans()
    nights_seen = [each for each in spans if each.name == "scan customers"]
    assert [each.status.status_code for each in nights_seen] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
    ]
    first = nights_seen[0]
    assert first.attributes["scan_pipeline.generation"] == good.scan_generation
    own = [each for each in spans if each.context.trace_id == first.context.trace_id]
    pages = [each for each in own if each.name == "page"]
    (walk,) = (each for each in own if each.name == "walk")
    assert {each.parent.span_id for each in pages} == {walk.context.span_id}
    assert [each.attributes.get("http.request.resend_count") for each in pages] == [None, 1, None]
    assert pages[0].attributes["server.address"] == "registry"
    (refused,) = walk.events
    assert refused.attributes["http.response.status_code"] == 429
    assert walk.start_time <= pages[0].start_time <= pages[0].end_time <= walk.end_time

    metrics = collected.metrics()
    assert metrics["scan_pipeline.pages"] == good.pages_observed + bad.pages_observed
    assert metrics["scan_pipeline.records"] == good.records_observed + bad.records_observed
    assert metrics["scan_pipeline.retries"] == 1
    assert metrics["scan_pipeline.refused"] == good.refused_responses + bad.refused_responses
    assert 2 <= metrics["scan_pipeline.wait.time"] < 3
    assert metrics["scan_pipeline.restarts"] == 0
    assert 0 < metrics["scan_pipeline.partial.time"] < metrics["scan_pipeline.walk.duration"]
    assert metrics["scan_pipeline.checkpoint.lag"] > 0
    assert metrics["scan_pipeline.walk.pages"] == told[-1]["pages"]
    everything = "".join(each.to_json() for each in spans)
    assert [word for word in NOTHING if word in everything] == []


def test_blocked_readers_are_counted_by_why(
    collected: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "scan_pipeline.stages.telemetry.setup.telemetry_of", lambda _: collected.telemetry
    )
    on, closed = {VARIABLE: "process"}, GateClosedError(scan="shop", generation=None, reason="no")

    tell_blocked(on, closed)
    tell_blocked(on, ValueError("of no reader"))
    tell_blocked(on, ValueError("of the server"), scan="shop", why="query_unbounded")
    tell_blocked({}, closed)

    assert collected.metrics()["scan_pipeline.readers.blocked"] == 2


def test_it_is_off_unless_asked_for_by_a_known_word() -> None:
    assert telemetry_of({}) is telemetry_of({VARIABLE: "none"}) is None
    with pytest.raises(ConfigurationError, match="expected otlp, process"):
        telemetry_of({VARIABLE: "yes"})


@pytest.mark.long
def test_a_collector_over_http_is_sent_a_night_of_the_command_line(tmp_path: Any) -> None:
    """`run` as a process of its own, configured by OpenTelemetry's own variables."""
    heard: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/metrics": []}

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard[self.path].append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    program = "from scan_pipeline.cli.main import main; main()"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        subprocess.run(
            [sys.executable, "-c", program, "--lake", str(tmp_path / "lake"), "run", "customers"],
            check=True,
            capture_output=True,
            cwd=tmp_path,
            env={
                **os.environ,
                VARIABLE: "otlp",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_address[1]}",
                "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
            },
        )
    finally:
        server.shutdown()
        server.server_close()

    traces = [ExportTraceServiceRequest.FromString(each) for each in heard["/v1/traces"]]
    spans = [
        span
        for each in traces
        for resource in each.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    assert sum(each.name == "page" for each in spans) == 88
    (resource,) = {
        attribute.value.string_value
        for each in traces
        for attribute in each.resource_spans[0].resource.attributes
        if attribute.key == "service.name"
    }
    assert resource == "scan_pipeline"
    metrics = ExportMetricsServiceRequest.FromString(heard["/v1/metrics"][-1])
    names = {each.name for each in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert {"scan_pipeline.pages", "scan_pipeline.checkpoint.lag"} <= names
