"""Computes pieces of a matrix on all cores, in their order, while the caller reads and writes
others.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# More threads would wait for the thread that reads and writes, and each holds pieces in memory.
MAX_THREADS = 8


def map_in_threads(
    function: Callable[[Piece], Result], pieces: Iterable[Piece]
) -> Iterator[Result]:
    """Yields the results in order like `map`, for functions that release the GIL, like numpy's.

    It takes a few pieces more than it has yielded. Raises the errors of the function and of the
    pieces.
    """
    num_threads = min(os.cpu_count() or 1, MAX_THREADS)
    computed: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(num_threads, "compress") as threads:
        for piece in pieces:
            computed.append(threads.submit(function, piece))
            if len(computed) > num_threads:
                yield computed.popleft().result()
        while computed:
            yield computed.popleft().result()
