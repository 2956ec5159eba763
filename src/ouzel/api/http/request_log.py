"""A request has one log line, and so has a response that a WebSocket asked for."""

import logging
import time
from http import HTTPStatus

from ouzel.api.http.exchange import Exchange

logger = logging.getLogger(__name__)


def log_exchange(exchange: Exchange, method: str, path: str) -> None:
    """`path` is percent-encoded, so the log gets no line breaks from it. Of those that watch, errors are told."""
    is_error = (exchange.status or 0) >= HTTPStatus.BAD_REQUEST
    level = logging.DEBUG if exchange.is_watching and not is_error else logging.INFO
    if not logger.isEnabledFor(level):
        return
    duration_s = time.perf_counter() - exchange.arrival_s
    generation = exchange.generation
    if generation is None:
        logger.log(level, "%s %s %s duration_s=%.4f", method, path, exchange.status, duration_s)
        return
    usage = generation.usage()
    logger.log(
        level,
        "%s %s %s model=%s prompt_tokens=%d completion_tokens=%d ttft_s=%.4f duration_s=%.4f finish=%s",
        *(method, path, exchange.status, generation.model_name),
        *(usage.prompt_tokens, usage.completion_tokens, generation.ttft_s or 0.0, duration_s),
        ",".join(generation.finish_reasons),
    )
