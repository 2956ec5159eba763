"""Keys and values of an f16 cache must lie within the range of f16: what is larger becomes infinite
there.

Inference in int8 and f32 has the range of f32, and no calculation beforehand tells how large keys
become. So the largest key or value of the self-check's tokens is read from the cache. Other texts
may have larger ones: a quarter of the range is the limit.
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
    """An f16 cache that was chosen, not named, does not suit the model or the memory; the message
    says why.
    """


@contextmanager
def range_checked(runner: OpenVINORunner, *, is_named: bool) -> Iterator[None]:
    """Checks the range when the block has run a self-check, whether or not the check fails: it does
    where keys are infinite.
    """
    try:
        yield
    except SelfCheckFailed:
        check_range(runner, is_named=is_named)
        raise
    check_range(runner, is_named=is_named)


def check_range(runner: OpenVINORunner, *, is_named: bool) -> None:
    """Reads what the self-check has left in the cache. Raises F16Unfit, unless the user has named
    f16.
    """
    num_tokens = num_checked_tokens(runner.info)
    if runner.info.kv_cache_dtype != "f16" or not num_tokens:
        return
    largest = runner.largest_cached(num_tokens)
    if largest <= LARGEST_CACHED:
        return
    found = (
        "a key or value is beyond f16"
        if largest > LARGEST_F16
        else f"a key or value is {largest:.0f}"
    )
    message = f"{found}, whose range ends at {LARGEST_F16:.0f}"
    if not is_named:
        raise F16Unfit(message)
    logger.warning("KV cache f16: %s; --kv-cache-dtype u8 has no such limit", message)
