"""Records the phases of a generation as spans: queue, prefill and decode."""

from ouzel.observability import Attributes, Span
from ouzel.types.step_output import RequestTiming


def add_phases(
    span: Span,
    timing: RequestTiming,
    *,
    submitted_s: float,
    last_token_s: float,
    attributes: Attributes,
) -> None:
    """Adds the phases below the request's span. `last_token_s` is 0 if there was no token."""
    prefill_s = submitted_s + timing.queue_s
    decode_s = prefill_s + timing.prefill_s
    phases = [("queue", submitted_s, prefill_s), ("prefill", prefill_s, decode_s)]
    if last_token_s > decode_s:
        phases.append(("decode", decode_s, last_token_s))
    for name, start_s, end_s in phases:
        span.child(name, start_s=start_s).end(attributes, end_s=end_s)
