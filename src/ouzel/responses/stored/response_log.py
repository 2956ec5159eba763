"""A response in the background has a log line at its end, for that of its request was written long before."""

import logging
import time

from ouzel.generation import Generation, span_attributes
from ouzel.observability import facts, span_in_scope
from ouzel.responses.response_object import ResponseObject

logger = logging.getLogger(__name__)


def begin_span() -> None:
    """Gives the task that makes the response a span of its own, where its request is traced."""
    of_request = span_in_scope.get()
    if of_request is not None:
        span_in_scope.set(of_request.child("response", start_s=time.perf_counter()))


def log_end(response: ResponseObject, generation: Generation, error: BaseException | None) -> None:
    """Logs what the edge logs of a request, and ends what `begin_span` has begun."""
    usage, finish = generation.usage(), ",".join(generation.finish_reasons)
    error_name = None if error is None else type(error).__name__
    logger.info(
        "response %s %s prompt_tokens=%d completion_tokens=%d finish=%s error=%s",
        *(
            response.id,
            response.status,
            usage.prompt_tokens,
            usage.completion_tokens,
            finish,
            error_name,
        ),
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
        span.end({**span_attributes(generation), **status}, error=error_name or "")
