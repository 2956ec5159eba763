"""Writes the log line and the trace span of a response in the background when it ends.

The log line of its request is written when the response begins, long before the end.
"""

import logging
import time

from ouzel.generation import AnyGeneration, collect_span_attributes
from ouzel.observability import facts, span_in_scope
from ouzel.responses.response_object import ResponseObject

logger = logging.getLogger(__name__)


def begin_span() -> None:
    """Begins a span for the task that makes the response, if its request is traced."""
    request_span = span_in_scope.get()
    if request_span is not None:
        span_in_scope.set(request_span.child("response", start_s=time.perf_counter()))


def log_end(
    response: ResponseObject, generation: AnyGeneration, error: BaseException | None
) -> None:
    """Logs status, usage and error of a response, and ends the span of `begin_span`."""
    usage, finish = generation.usage(), ",".join(generation.finish_reasons)
    error_name = None if error is None else type(error).__name__
    logger.info(
        "response %s %s prompt_tokens=%d completion_tokens=%d finish=%s error=%s",
        response.id,
        response.status,
        usage.prompt_tokens,
        usage.completion_tokens,
        finish,
        error_name,
        extra=facts(
            response_id=response.id,
            status=response.status,
            model=generation.model_name,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            finish=finish,
            error=error_name,
        ),
    )
    span = span_in_scope.get()
    if span is not None:
        status = {"ouzel.response.status": response.status}
        span.end({**collect_span_attributes(generation), **status}, error=error_name or "")
