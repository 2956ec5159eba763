"""Going through all objects of thousands of requests takes as long as some tokens do, and would be measured."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_THRESHOLDS = (50_000, 20, 100)


@contextmanager
def seldom_collected() -> Generator[None, None, None]:
    """What there is when the block begins is left alone while it runs, and what it makes is gone through seldom."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
