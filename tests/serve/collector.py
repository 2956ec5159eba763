"""Collects traces: takes spans by OTLP over HTTP, and answers 200."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan


@dataclass(frozen=True)
class ReceivedSpan:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    is_error: bool
    start_ns: int
    end_ns: int
    attributes: dict[str, object]
    resource: dict[str, object]


class Collector:
    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.paths: set[str] = set()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                collector.paths.add(self.path)
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.spans += _read_spans(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @contextmanager
    def running(self) -> Iterator["Collector"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def below(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        """Returns the spans directly below this span, in the order of their beginnings."""
        return sorted(
            (span for span in self.spans if span.parent_id == parent.span_id),
            key=lambda span: span.start_ns,
        )


def _read_spans(request: ExportTraceServiceRequest) -> list[ReceivedSpan]:
    return [
        _received(
            span, {pair.key: pair.value.string_value for pair in of_resource.resource.attributes}
        )
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def _received(span: ProtoSpan, resource: dict[str, object]) -> ReceivedSpan:
    values = {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "")
        for pair in span.attributes
    }
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        kind=span.kind,
        is_error=span.status.code == 2,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=values,
        resource=resource,
    )
