"""Every log line names the request that it belongs to: as text for people, or as JSON for those who collect logs.

What other libraries and Python itself have to say comes out in the same form.
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
    """A process hands them on to those that it starts."""

    level: str = "warning"
    log_format: LogFormat = "text"


_settings = LogSettings()


def log_settings() -> LogSettings:
    """Returns those of this process."""
    return _settings


def configure_logging(level: str, log_format: LogFormat = "text") -> None:
    """Gives this process one handler, on standard error; of others only warnings and worse are told."""
    global _settings  # noqa: PLW0603  as the root logger is: one for the process
    _settings = LogSettings(level, log_format)
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    number = logging.getLevelNamesMapping()[level.upper()]
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger("ouzel").setLevel(number)
    logging.captureWarnings(True)
    if log_format == "json":  # as text, tracebacks are best left as Python writes them
        sys.excepthook = _log_uncaught
        threading.excepthook = _log_uncaught_in_thread


def facts(**values: object) -> dict[str, Mapping[str, object]]:
    """Returns the `extra` of a line whose values are fields of their own in JSON; without those that are None."""
    return {"facts": {name: value for name, value in values.items() if value is not None}}


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        clear = (
            CLEAR_LINE if is_terminal(sys.stderr) else ""
        )  # a progress bar may stand in the line
        super().__init__(f"{clear}%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        record.request_id = request_id_in_scope.get()
        return super().format(record)


class _JsonFormatter(logging.Formatter):
    """Writes one object a line."""

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
        line |= getattr(record, "facts", {})  # only lines that `facts` made have them
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return _encode(line).decode()
        except (
            UnicodeEncodeError
        ):  # half a character, as in a file's name: JSON can write it, UTF-8 cannot
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
