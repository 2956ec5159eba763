"""A request that is traced has a span in scope, below which go the spans of what is done for it.

This file knows nothing of OpenTelemetry, which is there where traces are asked for only (`traces.py`). Times are those
of `time.perf_counter()`.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Protocol

Attributes = Mapping[str, str | int | float | Sequence[str]]


class Span(Protocol):
    trace_id: str  # in hexadecimal digits, as in `traceparent`
    span_id: str

    def child(self, name: str, *, start_s: float) -> "Span": ...

    def end(
        self, attributes: Attributes, *, end_s: float | None = None, name: str = "", error: str = ""
    ) -> None:
        """Ends it, now unless told; only one that has ended is exported. `error` says which kind of failure it was."""
        ...


span_in_scope: ContextVar[Span | None] = ContextVar("span", default=None)
