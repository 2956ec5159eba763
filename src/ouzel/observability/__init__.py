"""A server logs with the id of the request in scope, traces, and counts: metrics are named functions."""

from ouzel.observability.engine_reading import EngineReading
from ouzel.observability.logs import LogFormat, configure_logging, facts, log_settings, request_id_in_scope
from ouzel.observability.metrics import Metrics, exposition
from ouzel.observability.spans import Attributes, Span, span_in_scope

__all__ = [
    "Attributes",
    "EngineReading",
    "LogFormat",
    "Metrics",
    "Span",
    "configure_logging",
    "exposition",
    "facts",
    "log_settings",
    "request_id_in_scope",
    "span_in_scope",
]
