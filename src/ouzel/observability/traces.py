"""Exports spans to a collector by OTLP over HTTP; a thread of the SDK sends, and no request waits.

This module needs the extra `otel`. The SDK reads its environment variables itself:
OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_BSP_SCHEDULE_DELAY and others.
"""

import logging
import os
import threading
import time
from collections.abc import Iterable

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from ouzel.observability.spans import Attributes, Span

logger = logging.getLogger(__name__)

_CONTEXT_HEADERS = (b"traceparent", b"tracestate")
_MAX_COMPLAINT = 500  # characters
_CLOSE_TIMEOUT_S = 5.0
_COMPLAIN_EVERY_S = 60.0


class Traces:
    """Makes the spans of requests, as children of the span that the header `traceparent` names."""

    def __init__(self, endpoint: str, version: str) -> None:
        complaints = logging.getLogger("opentelemetry")
        complaints.handlers[:] = [_Seldom()]
        complaints.propagate = False
        self._provider = TracerProvider(resource=_resource(version), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._propagator = TraceContextTextMapPropagator()
        self._tracer = self._provider.get_tracer("ouzel", version)

    def begin_request(self, headers: Iterable[tuple[bytes, bytes]], start_s: float) -> Span:
        """Begins the span of a request with these headers."""
        carrier: dict[str, list[str]] = {}
        for name, value in headers:
            # `baggage` is left out: the SDK would log each value that it cannot read.
            if name in _CONTEXT_HEADERS:
                carrier.setdefault(name.decode(), []).append(value.decode("latin-1"))
        context = self._propagator.extract(
            {name: ",".join(values) for name, values in carrier.items()}
        )
        clock_ns = time.time_ns() - round(time.perf_counter() * 1e9)
        span = self._tracer.start_span(
            "request", context, trace.SpanKind.SERVER, start_time=clock_ns + round(start_s * 1e9)
        )
        return _SdkSpan(self._tracer, span, clock_ns)

    def close(self) -> None:
        """Exports the remaining spans, within 5 seconds."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces' end", daemon=True)
        closing.start()
        closing.join(_CLOSE_TIMEOUT_S)


class _SdkSpan:
    def __init__(self, tracer: trace.Tracer, span: trace.Span, clock_ns: int) -> None:
        self._tracer = tracer
        self._span = span
        self._clock_ns = clock_ns  # unix time in nanoseconds at perf_counter() == 0
        context = span.get_span_context()
        self.trace_id = trace.format_trace_id(context.trace_id)
        self.span_id = trace.format_span_id(context.span_id)

    def child(self, name: str, *, start_s: float) -> Span:
        context = trace.set_span_in_context(self._span)
        span = self._tracer.start_span(name, context, start_time=self._epoch_ns(start_s))
        return _SdkSpan(self._tracer, span, self._clock_ns)

    def end(
        self, attributes: Attributes, *, end_s: float | None = None, name: str = "", error: str = ""
    ) -> None:
        if name:
            self._span.update_name(name)
        self._span.set_attributes({**attributes})
        if error:
            self._span.set_attribute("error.type", error)
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end(self._epoch_ns(time.perf_counter() if end_s is None else end_s))

    def _epoch_ns(self, counter_s: float) -> int:
        return self._clock_ns + round(counter_s * 1e9)


class _Seldom(logging.Handler):
    """Logs warnings of the SDK at most once a minute.

    Without a limit the SDK logs a warning for each batch that the collector does not take.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._silent_until_s = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now_s = time.monotonic()
        if now_s >= self._silent_until_s:
            self._silent_until_s = now_s + _COMPLAIN_EVERY_S
            logger.warning("traces: %s", record.getMessage()[:_MAX_COMPLAINT])


def _resource(version: str) -> Resource:
    """Describes this service; a name of the service in the environment has precedence."""
    own = {"service.version": version}
    attributes = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    has_name = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in attributes
    return Resource.create(own if has_name else {"service.name": "ouzel", **own})
