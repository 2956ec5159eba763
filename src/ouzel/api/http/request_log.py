"""Logs each request, and each response that a WebSocket asked for, in one line."""

import logging
import time
from http import HTTPStatus

from ouzel.api.http.exchange import Exchange
from ouzel.observability import facts

logger = logging.getLogger(__name__)

_FINGERPRINT_LEN = 8  # length in hexadecimal digits


def log_exchange(exchange: Exchange, method: str, path: str) -> None:
    """Logs a request; routine requests that succeed at DEBUG. `path` must be percent-encoded."""
    is_error = (exchange.status or 0) >= HTTPStatus.BAD_REQUEST
    level = logging.DEBUG if exchange.is_routine and not is_error else logging.INFO
    if not logger.isEnabledFor(level):
        return
    values = _values(exchange)
    text = " ".join(f"{name}={_as_text(name, value)}" for name, value in values.items())
    extra = facts(method=method, path=path, status=exchange.status, **values)
    logger.log(level, "%s %s %s %s", method, path, exchange.status, text, extra=extra)


def _values(exchange: Exchange) -> dict[str, object]:
    duration_s = round(time.perf_counter() - exchange.arrival_s, 4)
    generation, refusal = exchange.generation or exchange.other_work, exchange.refusal
    values: dict[str, object] = {"duration_s": duration_s}
    if generation is not None:
        usage = generation.usage()
        values = {
            "model": generation.model_name,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "ttft_s": None if generation.ttft_s is None else round(generation.ttft_s, 4),
            "duration_s": duration_s,
            "finish": ",".join(generation.finish_reasons),
        }
    if exchange.audio_s is not None:
        values["audio_s"] = round(exchange.audio_s, 4)
    if exchange.client is not None:
        values["client"] = exchange.client
    if exchange.key_id is not None:
        values["key"] = fingerprint(exchange.key_id)
    if refusal is not None:
        values["error"] = refusal.error
        if refusal.field is not None:
            values["field"] = refusal.field
        values["reason"] = refusal.reason
    return values


def fingerprint(key_id: str) -> str:
    """Returns the first digits of a key's id: they tell keys apart, but do not lead to a key."""
    return key_id[:_FINGERPRINT_LEN]


def _as_text(name: str, value: object) -> str:
    if name.endswith("_s"):
        return f"{value or 0.0:.4f}"
    return f'"{value}"' if name == "reason" else str(value)
