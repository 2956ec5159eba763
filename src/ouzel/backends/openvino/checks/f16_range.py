"""Checks that keys and values of an f16 cache lie within the range of f16; larger ones turn
infinite.

Inference in int8 and f32 has the range of f32, and no calculation beforehand tells how large keys
become. So the check reads the largest key or value of the self-check's tokens from the cache. Other
texts may have larger ones: the limit is a quarter of the range.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.backends.openvino.checks.selfcheck import SelfCheckFailed, num_checked_tokens
from ouzel.backends.openvino.runners.runner import OpenVINORunner

LARGEST_F16 = 65504.0
LARGEST_CACHED = LARGEST_F16 / 4

logger = logging.getLogger(__name__)


class F16Unfit(Exception):
    """An f16 cache that Ouzel chose does not suit the model or the memory; the message says why."""


@contextmanager
def check_range_afterwards(runner: OpenVINORunner, *, is_named: bool) -> Iterator[None]:
    """Checks the range after the block, which runs a self-check.

    It also checks if the self-check fails, because infinite keys make it fail.
    """
    try:
        yield
    except SelfCheckFailed:
        check_range(runner, is_named=is_named)
        raise
    check_range(runner, is_named=is_named)


def check_range(runner: OpenVINORunner, *, is_named: bool) -> None:
    """Reads the keys and values that the self-check has left in the cache.

    Raises F16Unfit if they are too large; if the user has named f16 it only warns.
    """
    num_tokens = num_checked_tokens(runner.info)
    if runner.info.kv_cache_dtype != "f16" or not num_tokens:
        return
    largest = runner.largest_cached(num_tokens)
    if largest <= LARGEST_CACHED:
        return
    size = "too large for f16" if largest > LARGEST_F16 else f"{largest:.0f}"
    message = f"a key or value is {size}; the range of f16 ends at {LARGEST_F16:.0f}"
    if not is_named:
        raise F16Unfit(message)
    logger.warning("KV cache f16: %s; --kv-cache-dtype u8 has no such limit", message)
