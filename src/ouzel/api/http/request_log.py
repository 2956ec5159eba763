"""A request has one log line, and so has a response that a WebSocket asked for."""

import logging
import time
from http import HTTPStatus

from ouzel.api.http.exchange import Exchange
from ouzel.observability import facts

logger = logging.getLogger(__name__)


def log_exchange(exchange: Exchange, method: str, path: str) -> None:
    """`path` is percent-encoded, so the log gets no line breaks from it. Of those that watch, errors are told."""
    is_error = (exchange.status or 0) >= HTTPStatus.BAD_REQUEST
    level = logging.DEBUG if exchange.is_watching and not is_error else logging.INFO
    if not logger.isEnabledFor(level):
        return
    duration_s = round(time.perf_counter() - exchange.arrival_s, 4)
    status, generation = exchange.status, exchange.generation
    if generation is None:
        extra = facts(method=method, path=path, status=status, duration_s=duration_s)
        logger.log(level, "%s %s %s duration_s=%.4f", method, path, status, duration_s, extra=extra)
        return
    usage, finish = generation.usage(), ",".join(generation.finish_reasons)
    ttft_s = None if generation.ttft_s is None else round(generation.ttft_s, 4)
    logger.log(
        level,
        "%s %s %s model=%s prompt_tokens=%d completion_tokens=%d ttft_s=%.4f duration_s=%.4f finish=%s",
        *(method, path, status, generation.model_name),
        *(usage.prompt_tokens, usage.completion_tokens, ttft_s or 0.0, duration_s, finish),
        extra=facts(
            method=method,
            path=path,
            status=status,
            duration_s=duration_s,
            model=generation.model_name,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            ttft_s=ttft_s,
            finish=finish,
        ),
    )
