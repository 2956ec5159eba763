"""Defines the span of a traced request; the spans of work for the request are its children.

This module does not import OpenTelemetry, which may not be installed (`traces.py` does). Times are
seconds of `time.perf_counter()`.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Protocol

Attributes = Mapping[str, str | int | float | Sequence[str]]


class Span(Protocol):
    trace_id: str  # hexadecimal digits, as in `traceparent`
    span_id: str

    def child(self, name: str, *, start_s: float) -> "Span": ...

    def end(
        self, attributes: Attributes, *, end_s: float | None = None, name: str = "", error: str = ""
    ) -> None:
        """Ends the span, by default now; only ended spans are exported.

        `error` is the type of a failure, for example the name of an exception.
        """
        ...


span_in_scope: ContextVar[Span | None] = ContextVar("span", default=None)
