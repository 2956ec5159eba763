"""A response in the background has a log line at its end, for that of its request was written long before."""

import logging

from ouzel.generation import Generation
from ouzel.observability import facts
from ouzel.responses.response_object import ResponseObject

logger = logging.getLogger(__name__)


def log_end(response: ResponseObject, generation: Generation, error: BaseException | None) -> None:
    """Logs what the edge logs of a request."""
    usage, finish = generation.usage(), ",".join(generation.finish_reasons)
    error_name = None if error is None else type(error).__name__
    logger.info(
        "response %s %s prompt_tokens=%d completion_tokens=%d finish=%s error=%s",
        *(response.id, response.status, usage.prompt_tokens, usage.completion_tokens, finish, error_name),
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
