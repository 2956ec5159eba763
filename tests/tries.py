"""Comparisons of durations, which a busy machine can spoil by chance and a fault spoils each time."""

from collections.abc import Callable

MAX_TRIES = 5


def holds_in_a_try(compare: Callable[[], bool]) -> bool:
    """Tells whether `compare` is true at least once in `MAX_TRIES` calls; stops at the first call that is true.

    Other work on the machine delays one side of a comparison now and then. The fault that the test looks for
    delays the same side in every call.
    """
    return any(compare() for _ in range(MAX_TRIES))
