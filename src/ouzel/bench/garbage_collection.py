"""Makes garbage collections rare during a measurement.

A collection over the objects of thousands of requests takes as long as some tokens, and would be
measured as part of their times.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_THRESHOLDS = (50_000, 20, 100)


@contextmanager
def collect_rarely() -> Generator[None, None, None]:
    """Excludes existing objects from collections during the block, and collects new ones rarely."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
