"""Formats log lines with the id of their request, as text for people or as JSON for log collectors.

Log lines and warnings of other libraries and of Python itself have the same form.
"""

import json
import logging
import sys
import threading
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

import msgspec

from ouzel.observability.progress_bar import CLEAR_LINE, is_terminal
from ouzel.observability.spans import span_in_scope

LogFormat = Literal["text", "json"]

request_id_in_scope: ContextVar[str] = ContextVar("request_id", default="-")

_encode = msgspec.json.Encoder(enc_hook=str).encode
_uncaught = logging.getLogger("ouzel")


@dataclass(frozen=True, slots=True)
class LogSettings:
    """A process passes these settings on to the processes that it starts."""

    level: str = "warning"
    log_format: LogFormat = "text"


_settings = LogSettings()


def log_settings() -> LogSettings:
    """Returns the log settings of this process."""
    return _settings


def configure_logging(level: str, log_format: LogFormat = "text") -> None:
    """Gives this process one log handler, on standard error.

    `level` applies to Ouzel's own loggers; other libraries log warnings and errors only.
    """
    global _settings  # noqa: PLW0603  one for the process, like the root logger
    _settings = LogSettings(level, log_format)
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger("ouzel").setLevel(number)
    logging.captureWarnings(True)
    if log_format == "json":  # text logs keep Python's own tracebacks
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread


def facts(**values: object) -> dict[str, Mapping[str, object]]:
    """Returns the argument `extra` of a log call, which adds fields to a line in JSON.

    Values that are None are left out.
    """
    return {"facts": {name: value for name, value in values.items() if value is not None}}


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        # A progress bar may stand in the line.
        clear = CLEAR_LINE if is_terminal(sys.stderr) else ""
        super().__init__(f"{clear}%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.request_id = request_id_in_scope.get()
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {
            "time": time.removesuffix("+00:00") + "Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = request_id_in_scope.get()
        if request_id != "-":
            line["request_id"] = request_id
        span = span_in_scope.get()
        if span is not None:
            line |= {"trace_id": span.trace_id, "span_id": span.span_id}
        line |= getattr(record, "facts", {})  # only if the log call passed `extra=facts(…)`
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return _encode(line).decode()
        except UnicodeEncodeError:
            # A lone surrogate, for example in a file name: JSON can escape it, UTF-8 cannot.
            return json.dumps(line, default=str)


def _log_uncaught(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    _uncaught.critical("unexpected error", exc_info=(kind, error, traceback))


def _log_uncaught_in_thread(uncaught: threading.ExceptHookArgs) -> None:
    error = uncaught.exc_value or uncaught.exc_type()
    _uncaught.critical(
        "unexpected error", exc_info=(uncaught.exc_type, error, uncaught.exc_traceback)
    )
