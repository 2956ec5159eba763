"""Compares durations in a way that a busy machine does not spoil, but a fault does."""

from collections.abc import Callable

MAX_TRIES = 5


def holds_in_a_try(compare: Callable[[], bool]) -> bool:
    """Tells whether `compare` returns true in one of at most `MAX_TRIES` calls.

    Other work on the machine delays one side of a comparison now and then. The fault that the test
    looks for delays the same side in every call.
    """
    return any(compare() for _ in range(MAX_TRIES))
