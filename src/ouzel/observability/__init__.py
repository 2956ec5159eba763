"""Provides logs with request ids, traces, metrics and progress."""

from ouzel.observability.engine_reading import EngineReading
from ouzel.observability.http_responses import HttpResponses
from ouzel.observability.logs import (
    LogFormat,
    configure_logging,
    facts,
    log_settings,
    request_id_in_scope,
)
from ouzel.observability.metrics import Metrics, exposition
from ouzel.observability.process_metrics import build_metrics, process_metrics
from ouzel.observability.spans import Attributes, Span, span_in_scope

__all__ = [
    "Attributes",
    "EngineReading",
    "HttpResponses",
    "LogFormat",
    "Metrics",
    "Span",
    "build_metrics",
    "configure_logging",
    "exposition",
    "facts",
    "log_settings",
    "process_metrics",
    "request_id_in_scope",
    "span_in_scope",
]
