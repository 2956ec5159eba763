"""A server logs with the id of the request in scope, and counts: metrics are named functions."""

from ouzel.observability.logs import LogFormat, configure_logging, facts, log_settings, request_id_in_scope
from ouzel.observability.metrics import EngineReading, Metrics

__all__ = ["EngineReading", "LogFormat", "Metrics", "configure_logging", "facts", "log_settings", "request_id_in_scope"]
